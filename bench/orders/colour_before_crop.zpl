zpl 1

# The whole picture becomes gray, with contrast, before a small part of it is taken.
fn gray(
  image
) = 0.299 * f32(image[:, :, 0:1]) + 0.587 * f32(image[:, :, 1:2]) + 0.114 * f32(image[:, :, 2:3])

pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | image = bytes.decode_image(mode="rgb")
  | luma = gray(image)
  | luma = (luma / 255).pow(1.8)
  | x = luma.random_crop(128, 128)
  | select x
  | batch(64)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | image = bytes.decode_image(mode="rgb")
  | x = image.random_crop(128, 128)
  | x = (gray(x) / 255).pow(1.8)
  | select x
  | batch(64)
}
