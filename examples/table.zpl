zpl 1

# A table with a declared schema: nothing is guessed from its first rows. Keeps the wines above a strength, scales four
# measurements to mean 0 and deviation 1 (over all 178 wines), and makes batches of one-hot labelled rows.
pipeline table(file: path = "data/wine.csv", strongest_from: float = 12.0)
    -> {features: f32[32, 4], label: f32[32, 3]} {
  csv(
    file,
    columns={
      alcohol: f64,
      malic_acid: f64,
      ash: f64,
      alcalinity_of_ash: f64,
      magnesium: f64,
      total_phenols: f64,
      flavanoids: f64,
      nonflavanoid_phenols: f64,
      proanthocyanins: f64,
      color_intensity: f64,
      hue: f64,
      od280_od315: f64,
      proline: f64,
      cultivar: i64
    }
  )
  | filter alcohol >= strongest_from
  | shuffle()
  | features = f32([
        (alcohol - 13.0006) / 0.8095,
        (malic_acid - 2.3363) / 1.1140,
        (color_intensity - 5.0581) / 2.3118,
        (proline - 746.8933) / 314.0217
      ])
  | label = cultivar.one_hot(3)
  | select features, label
  | batch(32, drop_remainder=true)
}
