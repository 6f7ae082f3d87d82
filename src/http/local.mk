noinst_LIBRARIES += src/libhttp.a
src_libhttp_a_SOURCES = \
	src/http/accept.c \
	src/http/accept.h \
	src/http/chars.c \
	src/http/chars.h \
	src/http/cond.c \
	src/http/cond.h \
	src/http/date.c \
	src/http/date.h \
	src/http/fields.c \
	src/http/fields.h \
	src/http/forwarded.c \
	src/http/forwarded.h \
	src/http/h1_chunk.c \
	src/http/h1_frame.c \
	src/http/h1_line.c \
	src/http/h1_parser.h \
	src/http/h1_read.c \
	src/http/h1_read.h \
	src/http/h1_section.c \
	src/http/h1_write.c \
	src/http/h1_write.h \
	src/http/head.c \
	src/http/head.h \
	src/http/mime.c \
	src/http/mime.h \
	src/http/proxy_header.c \
	src/http/proxy_header.h \
	src/http/range.c \
	src/http/range.h \
	src/http/status.c \
	src/http/status.h \
	src/http/target.c \
	src/http/target.h \
	src/http/ws_frames.c \
	src/http/ws_frames.h
