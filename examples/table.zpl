zpl 1

# A table with a declared schema: nothing is guessed from its first rows. Keeps the wines above a strength, scales four
# measurements to mean 0 and deviation 1 (over all 178 wines), and makes batches of one-hot labelled rows.
pipeline table(file: path = "data/wine.csv", strongest_from: f64 = 12.0) -> {features: f32[32, 4], label: f32[32, 3]} {
  csv(file, columns={alcohol: f64, malic_acid: f64, color_intensity: f64, proline: f64, cultivar: i64})
  | filter alcohol >= strongest_from
  | shuffle()
  | features = [(alcohol - 13.0006) / 0.8095, (malic_acid - 2.3363) / 1.1140,
                (color_intensity - 5.0581) / 2.3118, (proline - 746.8933) / 314.0217].f32
  | label = cultivar.one_hot(3)
  | select features, label
  | batch(32, drop_remainder=true)
}
