zpl 1

# Image and mask are cropped by one box, drawn once per sample, and flipped by one coin: the pair stays aligned.
# A mask lies in masks/ under the name of its image in images/.
pipeline segmentation(root: path = "data/segmentation", size: int = 256)
    -> {image: f32[4, 3, size, size], mask: u8[4, size, size]} {
  files("{root}/images/*.jpg")
  | shuffle()
  | image = bytes.decode_image(mode="rgb")  # u8[h, w, 3]
  | mask = read_file(path.replace("/images/", "/masks/")).decode_image(mode="gray")  # u8[h, w, 1]
  | box = image.random_crop_box(size, size)
  | turn = coin()
  | image = image.crop(box)
                 .flip(turn)
                 .normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
                 .to_chw()
  | mask = mask.crop(box).flip(turn)
  | mask = u8(mask[:, :, 0] > 127)
  | select image, mask
  | batch(4, drop_remainder=true)
}
