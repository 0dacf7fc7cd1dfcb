zpl 1

# Windows of a signal: normalised whole, with statistics that are not used, cut to their middle half.
pipeline written(root: path) {
  records("{root}/signal.i16", size=4096, step=2048)
  | volts = f64(bytes.decode_raw(i16, 2048)) / 200
  | moved = volts - volts.mean()
  | energy = (moved * moved).mean().sqrt()
  | peak = abs(moved).max()
  | signal = f32(moved)
  | spectrum = sin(moved).sum()
  | filter energy >= 0.5 and index % 3 == 0
  | signal = signal[512:1536]
  | select signal, energy
  | batch(64)
}

pipeline hand(root: path) {
  records("{root}/signal.i16", size=4096, step=2048)
  | filter index % 3 == 0
  | volts = f64(bytes.decode_raw(i16, 2048)) / 200
  | mean = volts.mean()
  | energy = ((volts - mean) * (volts - mean)).mean().sqrt()
  | filter energy >= 0.5
  | signal = f32(volts[512:1536] - mean)
  | select signal, energy
  | batch(64)
}
