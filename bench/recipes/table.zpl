zpl 1

# Rows of a table: features of all of them are scaled before two conditions choose, of which the dear one stands first.
pipeline written(root: path) {
  csv(
    "{root}/table.csv",
    columns={a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64, name: str, kind: i64}
  )
  | features = [
        (a - 0.5) / 0.29,
        (b - 0.5) / 0.29,
        log(c + 1),
        sin(d * 6.28),
        (e * e + f * f).sqrt()
      ]
  | label = kind.one_hot(10)
  | filter exp(a) * log(b + 1) > 0.3 and kind % 5 == 2
  | features = f32(features)
  | select features, label
  | batch(256)
}

pipeline hand(root: path) {
  csv(
    "{root}/table.csv",
    columns={a: f64, b: f64, c: f64, d: f64, e: f64, f: f64, g: f64, h: f64, name: str, kind: i64}
  )
  | filter kind % 5 == 2
  | filter exp(a) * log(b + 1) > 0.3
  | features = f32([
        (a - 0.5) / 0.29,
        (b - 0.5) / 0.29,
        log(c + 1),
        sin(d * 6.28),
        (e * e + f * f).sqrt()
      ])
  | label = kind.one_hot(10)
  | select features, label
  | batch(256)
}
