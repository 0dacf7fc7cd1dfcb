zpl 1

# Normalised and mirrored whole, cropped last. By hand the box is that of the mirror image, cut out of the bytes.
pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | turn = coin()
  | image = bytes.decode_image(mode="rgb")
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .flip(turn)
  | box = image.random_crop_box(224, 224)
  | image = image.crop(box).to_chw()
  | select image
  | batch(64)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | turn = coin()
  | image = bytes.decode_image(mode="rgb")
  | box = image.random_crop_box(224, 224)
  | image = image.crop(image.flip_box(box, turn))
                 .flip(turn)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | select image
  | batch(64)
}
