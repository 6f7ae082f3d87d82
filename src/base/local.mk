noinst_LIBRARIES += src/libbase.a
src_libbase_a_SOURCES = \
	src/base/addr.c \
	src/base/addr.h \
	src/base/arena.c \
	src/base/arena.h \
	src/base/buf.c \
	src/base/buf.h \
	src/base/check.c \
	src/base/check.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/io.h \
	src/base/list.h \
	src/base/log.c \
	src/base/log.h \
	src/base/map.c \
	src/base/map.h \
	src/base/str.h \
	src/base/units.c \
	src/base/units.h \
	src/base/utf8.h
