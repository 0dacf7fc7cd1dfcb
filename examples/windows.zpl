zpl 1

# Windows of an ECG in NumPy's form, and a line of text for each; nine tenths of them, the same nine tenths in every
# run, to train with.
stream signals = npz("data/ecg.npz", columns={signal: i16[720], second: i64})
stream texts = text_lines("data/ecg.csv")
  | skip(1)
  | take(60)  # one line a window
  | first = text.parse_float()
  | select first

pipeline windows(part: enum(train, val) = train)
    -> {signal: f32[8, 720], second: i64[8], name: str[8], first: f64[8]} {
  zip(signals, texts)
  | split(part, by=second, train=0.9, val=0.1)
  | shuffle(seed=1)
  | name = "{path.stem}-{second.format("03d")}".upper()
  | filter name.matches(r"^ECG-\d{3}$") and second != 58
  | signal = signal.f32() / 200  # millivolt
  | select signal, second, name, first
  | batch(8, drop_remainder=true)
}
