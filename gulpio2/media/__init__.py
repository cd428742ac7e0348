"""Frames out of source files, as they are to be stored.

Video
    * `video`: `VideoFrames`, the frames of a file; loads what follows when needed.
    * `indexing`: frames of a source by number. `deferred`: a source that is found late.
    * `wholeness`: compares a file with what its own structure says about its length;
      `mp4_boxes` by the boxes of MP4, `matroska` by the elements of Matroska and WebM,
      which `ebml` reads,
      `ogg_pages` by the pages of Ogg, `flv_tags` by the tags of FLV,
      `asf_packets` by the packets of ASF,
      `gif_blocks` by the blocks of GIF, `nut_packets` by the packets of NUT,
      `program_packs` by the packets of MPEG-PS, `part_walks` by
      parts that follow each other, `cut` for what is missing. `transport`: packets
      that are missing from MPEG-TS, and in which other streams it goes on.
    * `opening`: what a file may be opened as.
    * `decode`: every frame of a stream, or an error. `limits`: how large they may be.
      `streams` chooses one; `threaded`: several threads for it, where that is safe,
      which `thread_choice` tells. `demuxing` reads its packets, `theora` knows those
      that are headers.
      `container_colour`: the matrix, where only the container declares it.
    * `counting`: how many packets are promised, and which give no frame.
    * `clock`: when a frame is shown.
    * `frame_rate`: repeats and drops frames as ``ffmpeg -r`` does; `skipping` knows
      which before they are decoded. `resampling` gives the frames by them.
    * `excerpts`: the frames between two times. `seeking` decodes them from a key frame
      on; `random_access` and `edit_lists` tell where that is exact.
    * `convert`: from a decoded frame to the planes of a JPEG, by way of `planes` (pixel
      formats), `scaling` (their sizes), `colour` (matrix and range), `overshoot` (what
      is above white) and `orientation`.

Images
    * `images`: `ImageFrames`, image files as frames.
    * `image_files`: reads one; `declared` tells how large those say they are that are
      no JPEG; `netpbm` reads PGM, PPM and PAM, `tiff`
      and `png` prepare those for OpenCV, `misread` other formats. `unreadable`: why it
      gives nothing.
    * `resize`: sizes by the short edge.

Files
    * `folders`: finds them, by literal paths.
    * `bursting`: a video as a folder of JPEG files, for old programs.
"""

__all__: list[str] = []
