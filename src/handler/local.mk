noinst_LIBRARIES += src/libhandler.a
src_libhandler_a_SOURCES = \
	src/handler/autoindex.c \
	src/handler/autoindex.h \
	src/handler/builtin.c \
	src/handler/builtin.h \
	src/handler/file.c \
	src/handler/file.h \
	src/handler/file_cache.c \
	src/handler/file_cache.h \
	src/handler/file_path.c \
	src/handler/file_path.h \
	src/handler/file_sibling.c \
	src/handler/file_sibling.h \
	src/handler/fixed.c \
	src/handler/fixed.h \
	src/handler/meteor.c \
	src/handler/meteor.h \
	src/handler/meteor_bundle.c \
	src/handler/meteor_bundle.h \
	src/handler/meteor_manifest.c \
	src/handler/meteor_manifest.h \
	src/handler/proxy.c \
	src/handler/proxy.h \
	src/handler/proxy_answer.c \
	src/handler/proxy_bind.c \
	src/handler/proxy_fields.c \
	src/handler/proxy_fields.h \
	src/handler/proxy_try.c \
	src/handler/proxy_try.h \
	src/handler/redirect.c \
	src/handler/redirect.h \
	src/handler/root.c \
	src/handler/root.h \
	src/handler/sticky.c \
	src/handler/sticky.h \
	src/handler/tunnel.c
