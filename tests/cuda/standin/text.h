/* What the stand-in for NVRTC calls a binary: a mark, the options a line each, an empty line, the neutral text. */
#ifndef ZLG_STANDIN_TEXT_H
#define ZLG_STANDIN_TEXT_H

#define TEXT_MARK "// stand-in text\n"

/* The options for the OpenCL compiler (the caller's to free), and where the source begins; NULL for anything else. */
char *text_split(const char *text, const char **source);

#endif
