noinst_LIBRARIES += src/libnet.a
src_libnet_a_SOURCES = \
	src/net/conn.c \
	src/net/conn.h \
	src/net/deadline.c \
	src/net/deadline.h \
	src/net/listen.c \
	src/net/listen.h \
	src/net/loop.c \
	src/net/loop.h \
	src/net/mailbox.c \
	src/net/mailbox.h \
	src/net/plain.c
