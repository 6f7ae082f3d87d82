/* SPDX-License-Identifier: MIT */
#ifndef BASE_IO_H
#define BASE_IO_H

/* What came of an I/O call. Never mixed with HTTP statuses. */
enum io {
    IO_OK,     /* done */
    IO_AGAIN,  /* taken or nothing there; wait for the event */
    IO_EOF,    /* the peer has sent FIN */
    IO_CLOSED, /* the connection is gone */
    IO_ERROR,  /* it failed; errno says how */
};

#endif
