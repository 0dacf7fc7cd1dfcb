zpl 1

# Normalised, resized, and cropped last. By hand, the pixels that the crop is made of are cut out first. What is resized
# stays float: a resize of bytes rounds to bytes, and would be another.
pipeline written(root: path) {
  files("{root}/*/*.jpg")
  | image = bytes.decode_image(mode="rgb")
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .resize(160, 160)
  | box = image.random_crop_box(128, 128)
  | image = image.crop(box).to_chw()
  | select image
  | batch(64)
}

pipeline hand(root: path) {
  files("{root}/*/*.jpg")
  | shape = bytes.decode_image_shape()
  | box = shape.resize_shape(160, 160).random_crop_box(128, 128)
  | source = shape.resize_source(box, 160, 160)
  | image = bytes.decode_image_region(source)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .resize_region(box, source, shape.height(), shape.width(), 160, 160)
                 .to_chw()
  | select image
  | batch(64)
}
