zpl 1

# Image and mask, normalised and made masks of, mirrored and cropped alike.
pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb")
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
  | mask = read_file(path).decode_image(mode="gray")
  | mask = u8(mask[:, :, 0] > 127)
  | turn = coin()
  | image = image.flip(turn)
  | mask = mask.flip(turn)
  | box = image.random_crop_box(256, 256)
  | image = image.crop(box).to_chw()
  | mask = mask.crop(box)
  | select image, mask
  | batch(16, drop_remainder=true)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | turn = coin()
  | box = bytes.decode_image_shape().random_crop_box(256, 256)
  | image = bytes.decode_image_region(bytes.decode_image_shape().flip_box(box, turn))
                 .flip(turn)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | mask = bytes.decode_image_region(bytes.decode_image_shape().flip_box(box, turn), mode="gray")
                .flip(turn)
  | mask = u8(mask[:, :, 0] > 127)
  | select image, mask
  | batch(16, drop_remainder=true)
}

pipeline needed(root: path) {
  files("{root}/*/*.jpg")
  | shuffle()
  | turn = coin()
  | box = bytes.decode_image_shape().random_crop_box(256, 256)
  | box = bytes.decode_image_shape().flip_box(box, turn)
  | select path, box
}
