zpl 1

# Windows over a measured signal: two seconds of an ECG at 360 Hz, a new one every second. Each window loses its mean;
# its RMS tells how much moves in it, and windows in which next to nothing does are left out.
fn rms(x: f64[n]) = (x * x).mean().sqrt()

pipeline signal(
  file: path = "data/ecg.i16",
  window: int = 720,
  step: int = 360,
  least: float = 0.05
)
    -> {signal: f32[16, window], rms: f64[16]} {
  records(file, size=2 * window, step=2 * step)       # pieces of a raw file, two bytes a value
  | volts = f64(bytes.decode_raw(i16, window)) / 200  # f64[window], millivolt
  | moved = volts - volts.mean()
  | rms = rms(moved)
  | filter rms >= least
  | shuffle()
  | signal = f32(moved)
  | select signal, rms
  | batch(16, drop_remainder=true)
}
