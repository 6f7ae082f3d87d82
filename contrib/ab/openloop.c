/* SPDX-License-Identifier: MIT */
/*
 * An open-loop HTTP/1.1 load generator: requests start at a fixed rate, whatever the server does.
 *
 *     openloop -r RATE -d SECONDS [-c CONNECTIONS] [-t TIMEOUT] [-x] [-H 'Name: value']... [-o FILE] URL
 *
 * Request i is due i / RATE seconds after the start, and its latency counts from then: one that had to wait because all
 * connections were busy has waited, as a user would have (a closed loop leaves that out, and so flatters whoever
 * stalls). -c bounds the connections (default 100), which are kept between requests unless -x is given. FILE gets one
 * row for each request in the order in which they were due: start and latency in microseconds, and what became of it.
 *
 * Kinds: ok, connect, read (reset, early end, no HTTP), write, timeout (TIMEOUT seconds after it was due, default 10),
 * status (not 2xx), length (another body length than the first answer's). At the end `key<TAB>value` lines go to
 * stdout; each second `Completed N requests` goes to stderr. One thread; a connection owns the request it works on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum kind { PENDING, OK, CONNECT, READ, WRITE, TIMEOUT, STATUS, LENGTH, KINDS };
static const char *const kind_names[KINDS] = { "pending", "ok", "connect", "read", "write", "timeout", "status", "length" };

enum phase { CLOSED, CONNECTING, IDLE, SENDING, HEAD, BODY, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER };
enum { HEAD_MAX = 16384, READ_SIZE = 65536, NONE = -1 };

struct request {
    int64_t due, latency; /* ns */
    enum kind kind;
};

struct conn {
    int fd;
    enum phase phase;
    int64_t request; /* index, or NONE */
    size_t sent, head_len, line_len;
    int64_t left, length; /* of the body or chunk; -1: until the connection ends */
    int64_t idle_since, idle; /* ns: when the last answer was complete, and how long it then had no request */
    int status;
    bool close_after;
    char head[HEAD_MAX];
};

static struct {
    double rate, seconds, timeout;
    size_t conns;
    bool new_each;
    const char *out;
    struct addrinfo *address;
    char text[8192];
    size_t text_len;
} opt = { .timeout = 10, .conns = 100 };

static struct request *requests;
static struct conn *conns;
static int64_t n_requests, next_due, next_started, n_done, first_length = NONE, bytes_read, origin;
static int epoll;

static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("openloop: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - origin;
}

static void watch(struct conn *c, uint32_t events, int op)
{
    struct epoll_event e = { .events = events, .data.ptr = c };
    if (epoll_ctl(epoll, op, c->fd, &e) != 0)
        die("epoll_ctl: %s", strerror(errno));
}

static void drop(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->phase = CLOSED;
}

/* The request of c has come to its end; c is free for another one. */
static void finish(struct conn *c, enum kind kind)
{
    struct request *r = &requests[c->request];
    r->kind = kind;
    r->latency = now() - r->due;
    n_done++;
    c->request = NONE;
    if ((kind != OK && kind != STATUS && kind != LENGTH) || c->close_after || opt.new_each)
        drop(c);
    else
        c->phase = IDLE;
    c->idle_since = now();
}

static void begin(struct conn *c, int64_t i);

/* The server may close a connection that nothing used for a while just as it is used again. That is no failure, and
 * the request goes out once more on a new connection, its clock running. */
static void broken(struct conn *c, enum kind kind)
{
    int64_t i = c->request;
    if (c->idle > 1000000000 && c->head_len == 0 && (c->phase == SENDING || c->phase == HEAD)) {
        drop(c);
        begin(c, i);
        return;
    }
    finish(c, kind);
}

static void answered(struct conn *c)
{
    if (first_length == NONE && c->status / 100 == 2)
        first_length = c->length;
    finish(c, c->status / 100 != 2 ? STATUS : c->length != first_length ? LENGTH : OK);
}

static bool header_is(const char *line, const char *end, const char *name, const char **value)
{
    size_t n = strlen(name);
    if ((size_t)(end - line) <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return false;
    for (*value = line + n + 1; *value < end && (**value == ' ' || **value == '\t');)
        ++*value;
    return true;
}

/* The head is complete and ends with a NUL; false: it is no HTTP. */
static bool read_head(struct conn *c)
{
    if (strncmp(c->head, "HTTP/1.", 7) != 0 || c->head_len < 12)
        return false;
    c->status = (int)strtol(c->head + 9, NULL, 10);
    c->close_after = c->head[7] == '0';
    c->left = c->status == 204 || c->status == 304 ? 0 : -1;
    bool chunked = false;
    const char *value;
    for (char *line = strchr(c->head, '\n'); line != NULL && line[1] != '\0'; line = strchr(line, '\n')) {
        const char *end = strpbrk(++line, "\r\n");
        if (end == NULL)
            break;
        if (header_is(line, end, "Content-Length", &value))
            c->left = strtoll(value, NULL, 10);
        else if (header_is(line, end, "Transfer-Encoding", &value))
            chunked = strncasecmp(value, "chunked", 7) == 0;
        else if (header_is(line, end, "Connection", &value))
            c->close_after = strncasecmp(value, "close", 5) == 0;
    }
    c->length = chunked || c->left < 0 ? 0 : c->left;
    c->line_len = 0;
    c->phase = chunked ? CHUNK_SIZE : BODY;
    return true;
}

/* Takes a line of a chunked body a byte at a time into head; true: it is complete. */
static bool line_byte(struct conn *c, char byte)
{
    if (byte == '\n') {
        c->head[c->line_len] = '\0';
        c->line_len = 0;
        return true;
    }
    if (byte != '\r' && c->line_len < 64)
        c->head[c->line_len++] = byte;
    return false;
}

static size_t take_chunked(struct conn *c, const char *p, size_t n)
{
    if (c->phase == CHUNK_DATA) {
        size_t take = n < (size_t)c->left ? n : (size_t)c->left;
        c->left -= (int64_t)take;
        c->length += (int64_t)take;
        if (c->left == 0)
            c->phase = CHUNK_END;
        return take;
    }
    bool empty = c->line_len == 0 && (*p == '\n');
    if (*p == '\r' || !line_byte(c, *p))
        return 1;
    if (c->phase == CHUNK_SIZE) {
        c->left = (int64_t)strtoll(c->head, NULL, 16);
        c->phase = c->left > 0 ? CHUNK_DATA : TRAILER;
    } else if (c->phase == CHUNK_END) {
        c->phase = CHUNK_SIZE;
    } else if (empty) {
        answered(c);
    }
    return 1;
}

/* Returns how many bytes were used up by the head; -1: no HTTP. */
static ssize_t take_head(struct conn *c, const char *p, size_t n)
{
    size_t old = c->head_len, room = HEAD_MAX - 1 - old, take = n < room ? n : room;
    memcpy(c->head + old, p, take);
    c->head_len += take;
    const char *end = memmem(c->head, c->head_len, "\r\n\r\n", 4);
    if (end == NULL)
        return room > n ? (ssize_t)take : -1;
    c->head_len = (size_t)(end + 4 - c->head);
    c->head[c->head_len] = '\0';
    return read_head(c) ? (ssize_t)(c->head_len - old) : -1;
}

static void take(struct conn *c, const char *p, size_t n)
{
    while (c->request != NONE && (n > 0 || (c->phase == BODY && c->left == 0))) {
        size_t used = 0;
        if (c->phase == HEAD) {
            ssize_t got = take_head(c, p, n);
            if (got < 0) {
                finish(c, READ);
                return;
            }
            used = (size_t)got;
        } else if (c->phase == BODY && c->left >= 0) {
            used = n < (size_t)c->left ? n : (size_t)c->left;
            c->left -= (int64_t)used;
            if (c->left == 0)
                answered(c);
        } else if (c->phase == BODY) {
            c->length += (int64_t)n;
            used = n;
        } else {
            used = take_chunked(c, p, n);
        }
        p += used;
        n -= used;
    }
}

static void receive(struct conn *c)
{
    static char buf[READ_SIZE];
    while (c->fd >= 0) {
        ssize_t n = recv(c->fd, buf, sizeof buf, 0);
        if (n > 0) {
            bytes_read += n;
            if (c->request == NONE)
                drop(c);
            else
                take(c, buf, (size_t)n);
        } else if (n < 0 && errno == EAGAIN) {
            return; /* not before: edge-triggered, and a FIN behind the bytes is told once */
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (c->request == NONE) {
            drop(c);
        } else if (n == 0 && c->phase == BODY && c->left < 0) {
            c->close_after = true;
            answered(c);
        } else {
            broken(c, READ);
            return;
        }
    }
}

static void transmit(struct conn *c)
{
    while (c->sent < opt.text_len) {
        ssize_t n = send(c->fd, opt.text + c->sent, opt.text_len - c->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                broken(c, WRITE);
            return; /* edge-triggered: it comes back when there is room */
        }
        c->sent += (size_t)n;
    }
    c->phase = HEAD;
}

static void begin(struct conn *c, int64_t i)
{
    c->request = i;
    c->sent = c->head_len = 0;
    c->close_after = false;
    if (c->phase == IDLE) {
        c->idle = now() - c->idle_since;
        c->phase = SENDING;
        transmit(c);
        return;
    }
    c->idle = 0;
    c->phase = CONNECTING;
    c->fd = socket(opt.address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        finish(c, CONNECT);
        return;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    if (connect(c->fd, opt.address->ai_addr, opt.address->ai_addrlen) != 0 && errno != EINPROGRESS)
        finish(c, CONNECT);
    else
        watch(c, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, EPOLL_CTL_ADD);
}

static void on_event(struct conn *c, uint32_t events)
{
    if (c->fd < 0)
        return;
    if (c->phase == CONNECTING) {
        int error = 0;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof error });
        if (error != 0) {
            finish(c, CONNECT);
            return;
        }
        if (!(events & EPOLLOUT))
            return;
        c->phase = SENDING;
    }
    if (c->phase == SENDING)
        transmit(c);
    if (c->fd >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
        receive(c);
}

/* Starts what is due, as far as there are connections; kept ones first. */
static void start_due(void)
{
    int64_t t = now();
    while (next_due < n_requests && requests[next_due].due <= t)
        next_due++;
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < opt.conns && next_started < next_due; i++)
            if (conns[i].request == NONE && (conns[i].phase == IDLE) == (pass == 0))
                begin(&conns[i], next_started++);
}

static void expire(void)
{
    int64_t limit = now() - (int64_t)(opt.timeout * 1e9);
    for (size_t i = 0; i < opt.conns; i++)
        if (conns[i].request != NONE && requests[conns[i].request].due < limit)
            finish(&conns[i], TIMEOUT);
    while (next_started < next_due && requests[next_started].due < limit) {
        requests[next_started].kind = TIMEOUT;
        requests[next_started++].latency = (int64_t)(opt.timeout * 1e9);
        n_done++;
    }
}

static void run(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event events[256], e = { .events = EPOLLIN, .data.ptr = NULL };
    if (timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &e) != 0)
        die("timer: %s", strerror(errno));
    int64_t second = 1000000000;
    while (n_done < n_requests) {
        if (next_due < n_requests) {
            int64_t due = origin + requests[next_due].due;
            struct itimerspec at = { .it_value = { due / 1000000000, due % 1000000000 } };
            timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        }
        int n = epoll_wait(epoll, events, 256, 100);
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr != NULL)
                on_event(events[i].data.ptr, events[i].events);
            else if (read(timer, &(uint64_t){ 0 }, sizeof(uint64_t)) < 0 && errno != EAGAIN)
                die("timer: %s", strerror(errno));
        start_due();
        expire();
        if (now() >= second) {
            fprintf(stderr, "Completed %" PRId64 " requests\n", n_done);
            second += 1000000000;
        }
    }
    close(timer);
}

static void report(void)
{
    int64_t counts[KINDS] = { 0 }, end = 0;
    FILE *f = opt.out != NULL ? fopen(opt.out, "w") : NULL;
    if (opt.out != NULL && f == NULL)
        die("%s: %s", opt.out, strerror(errno));
    if (f != NULL)
        fputs("start_us\tlatency_us\tkind\n", f);
    for (int64_t i = 0; i < n_requests; i++) {
        const struct request *r = &requests[i];
        counts[r->kind]++;
        if (r->due + r->latency > end)
            end = r->due + r->latency;
        if (f != NULL)
            fprintf(f, "%" PRId64 "\t%" PRId64 "\t%s\n", r->due / 1000, r->latency / 1000, kind_names[r->kind]);
    }
    if (f != NULL && fclose(f) != 0)
        die("%s: %s", opt.out, strerror(errno));
    printf("requests\t%" PRId64 "\nseconds\t%.6f\nbytes\t%" PRId64 "\n", n_requests, (double)end / 1e9, bytes_read);
    for (size_t k = CONNECT; k < KINDS; k++)
        printf("%s\t%" PRId64 "\n", kind_names[k], counts[k]);
}

static void add_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(opt.text + opt.text_len, sizeof opt.text - opt.text_len, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof opt.text - opt.text_len)
        die("the request is too long");
    opt.text_len += (size_t)n;
}

/* http://HOST[:PORT][/PATH] */
static void set_url(const char *url, char *const *headers, size_t n_headers)
{
    char host[256], port[8] = "80";
    if (strncmp(url, "http://", 7) != 0)
        die("only http:// URLs, not %s", url);
    const char *authority = url + 7, *path = strchr(authority, '/');
    size_t n = path != NULL ? (size_t)(path - authority) : strlen(authority);
    if (n == 0 || n >= sizeof host)
        die("no host in %s", url);
    memcpy(host, authority, n);
    host[n] = '\0';
    add_text("GET %s HTTP/1.1\r\nHost: %s\r\n%s", path != NULL ? path : "/", host, opt.new_each ? "Connection: close\r\n" : "");
    for (size_t i = 0; i < n_headers; i++)
        add_text("%s\r\n", headers[i]);
    add_text("\r\n");
    char *colon = strrchr(host, ':'), *name = host;
    if (colon != NULL && strchr(colon, ']') == NULL) {
        *colon = '\0';
        snprintf(port, sizeof port, "%s", colon + 1);
    }
    if (*name == '[') {
        name++;
        name[strcspn(name, "]")] = '\0';
    }
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    int rc = getaddrinfo(name, port, &hints, &opt.address);
    if (rc != 0)
        die("%s: %s", host, gai_strerror(rc));
}

static double positive(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end != '\0' || !(v > 0) || v > 1e9)
        die("`%s` is no positive number", text);
    return v;
}

static void options(int argc, char **argv)
{
    char **headers = calloc((size_t)argc, sizeof *headers);
    size_t n_headers = 0;
    int o;
    while ((o = getopt(argc, argv, "r:d:c:t:xH:o:")) != -1) {
        switch (o) {
        case 'r': opt.rate = positive(optarg); break;
        case 'd': opt.seconds = positive(optarg); break;
        case 'c': opt.conns = (size_t)positive(optarg); break;
        case 't': opt.timeout = positive(optarg); break;
        case 'x': opt.new_each = true; break;
        case 'o': opt.out = optarg; break;
        case 'H': headers[n_headers++] = optarg; break;
        default: exit(2);
        }
    }
    if (!(opt.rate > 0) || !(opt.seconds > 0) || optind != argc - 1 || opt.conns < 1)
        die("usage: openloop -r RATE -d SECONDS [-c N] [-t TIMEOUT] [-x] [-H 'Name: value']... [-o FILE] URL");
    set_url(argv[optind], headers, n_headers);
    free(headers);
}

int main(int argc, char **argv)
{
    options(argc, argv);
    n_requests = (int64_t)(opt.rate * opt.seconds + 0.5);
    requests = calloc((size_t)n_requests + 1, sizeof *requests);
    conns = calloc(opt.conns, sizeof *conns);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (requests == NULL || conns == NULL || epoll < 0)
        die("out of memory");
    for (int64_t i = 0; i < n_requests; i++)
        requests[i].due = (int64_t)((double)i * 1e9 / opt.rate);
    for (size_t i = 0; i < opt.conns; i++) {
        conns[i].fd = -1;
        conns[i].request = NONE;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    origin = now();
    run();
    report();
    for (size_t i = 0; i < opt.conns; i++)
        drop(&conns[i]);
    close(epoll);
    freeaddrinfo(opt.address);
    free(conns);
    free(requests);
    return EXIT_SUCCESS;
}
