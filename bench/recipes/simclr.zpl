zpl 1

# SimCLR: two views of each picture, each a random box, mirrored, brightness and contrast changed (p = 0.8), and gray
# (p = 0.2). There is no blur here, and no change of hue.
fn jitter(
  x,
  by,
  contrast,
  change
) = where(change, ((x * by).clamp(0, 1) * contrast + (1 - contrast) * 0.45).clamp(0, 1), x)
fn gray(
  x,
  turn
) = where(turn, 0.299 * x[:, :, 0:1] + 0.587 * x[:, :, 1:2] + 0.114 * x[:, :, 2:3], x)

pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb")
  | view1 = image.random_resized_crop(224, 224, scale=[0.08, 1]).random_flip().to_unit()
  | view2 = image.random_resized_crop(224, 224, scale=[0.08, 1]).random_flip().to_unit()
  | view1 = gray(jitter(view1, uniform(0.2, 1.8), uniform(0.2, 1.8), coin(0.8)), coin(0.2)).to_chw()
  | view2 = gray(jitter(view2, uniform(0.2, 1.8), uniform(0.2, 1.8), coin(0.8)), coin(0.2)).to_chw()
  | select view1, view2
  | batch(32, drop_remainder=true)
}

# The order as written is the best there is: the boxes overlap, so the picture is decoded once and whole.
pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb")
  | view1 = image.random_resized_crop(224, 224, scale=[0.08, 1]).random_flip().to_unit()
  | view2 = image.random_resized_crop(224, 224, scale=[0.08, 1]).random_flip().to_unit()
  | view1 = gray(jitter(view1, uniform(0.2, 1.8), uniform(0.2, 1.8), coin(0.8)), coin(0.2)).to_chw()
  | view2 = gray(jitter(view2, uniform(0.2, 1.8), uniform(0.2, 1.8), coin(0.8)), coin(0.2)).to_chw()
  | select view1, view2
  | batch(32, drop_remainder=true)
}
