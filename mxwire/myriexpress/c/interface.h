/* What the library in C and the engine in Python share. cffi reads this file, so it has no conditionals and includes. */

#define MXW_RECORDS 1024
#define MXW_ENDPOINTS 256
#define MXW_LINKS 16
#define MXW_CHANNELS 64
#define MXW_OK 1000
#define MXW_ENDED 2000
#define MXW_COPIED 2001
#define MXW_NO_PARTNER 0xffffffff

/* The end of one request. */
struct mxw_record {
    uint64_t request;
    uint64_t match_info;
    uint32_t status;
    uint32_t partner;
    uint32_t length;
    uint32_t transferred;
};

/* Memory that both sides read and write; each field has one writer. */
struct mxw_shared {
    uint64_t written;                    /* records written so far, by Python within the section */
    uint64_t taken;                      /* records taken so far, by C within its lock */
    uint64_t work;                       /* not 0 if the engine has work without a frame */
    uint64_t ended;                      /* not 0 if the host has ended */
    uint64_t links;                      /* number of links */
    uint64_t channels;                   /* number of channels to processes of the same host */
    uint64_t descriptors;                /* number of descriptors that are readable when there is work */
    uint64_t word[MXW_LINKS];            /* per link, address of the word whose lowest bit announces a frame; 0: none */
    uint64_t produced[MXW_CHANNELS];     /* per channel, address of its producer's position */
    uint64_t consumed[MXW_CHANNELS];     /* per channel, the consumer's position */
    uint64_t descriptor[MXW_LINKS + 1];
    uint64_t unexpected[MXW_ENDPOINTS];  /* unexpected messages per endpoint */
    struct mxw_record records[MXW_RECORDS];
};

/* mx_segment_t */
struct mxw_segment {
    void *pointer;
    uint32_t length;
};

/* The functions of the library in C that the engine calls. */
struct mxw_callbacks {
    void (*drain)(void);
    void (*name_partner)(uint32_t partner, uint32_t endpoint, uint64_t nic_id, uint32_t number, uint32_t session);
    int (*unexpected)(uint32_t endpoint, uint32_t partner, uint64_t match_info, uint32_t length, void *data,
                      uint64_t identity);
    int (*consume)(uint32_t endpoint, uint32_t partner, uint64_t match_info, uint32_t length, void *data);
    void (*finalize)(void);
};
