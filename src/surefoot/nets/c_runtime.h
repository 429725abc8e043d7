/* The functions of an exported policy. `c_header` copies those that a policy calls and puts the policy's name before them.
 *
 * Blocks are separated by empty lines. The arithmetic is that of the kernel's base instruction set, one number at a time: the same
 * polynomials (native/src/simd.h) and the same order of additions (native/src/gemm.h, layers.inc, scan.inc), hence the same bits. */

typedef union {
    float number;
    uint32_t word;
} policy_bits;

static inline float policy_clamp(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

/* x P(x^2) / Q(x^2) on [-8, 8]; beyond, tanh is 1 to within 2e-7. */
static inline float policy_tanh(float x) {
    const float y = policy_clamp(x, -8.0f, 8.0f), z = y * y;
    float p = 1.787093654e-02f, q;
    p = p * z + 2.569059181e+01f;
    p = p * z + 4.190816895e+03f;
    p = p * z + 1.577541562e+05f;
    p = p * z + 1.173373375e+06f;
    q = z + 4.002717285e+02f;
    q = q * z + 3.070065625e+04f;
    q = q * z + 5.488785625e+05f;
    q = q * z + 1.173373375e+06f;
    return y * p / q;
}

/* Exactly 0 or 1 where policy_tanh is clamped: SiLU multiplies what is left with x, which may be large. */
static inline float policy_sigmoid(float x) {
    if (x >= 16.0f || x <= -16.0f) return x > 0.0f ? 1.0f : 0.0f;
    return 0.5f + 0.5f * policy_tanh(0.5f * x);
}

/* x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial in r, n added to the exponent. Clamped to finite results. */
static inline float policy_exp(float x) {
    const float y = policy_clamp(x, -87.0f, 88.0f);
    policy_bits shifted, result;
    float n, r, p;
    shifted.number = y * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */
    n = shifted.number - 12582912.0f;
    r = y - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    result.number = p;
    result.word += (shifted.word - 0x4b400000u) << 23;
    return x == x ? result.number : x;
}

/* e^x - 1, accurate for small x too: 2t / (1 - t) with t = tanh(x/2). */
static inline float policy_expm1(float x) {
    const float t = policy_tanh(policy_clamp(x, -1.0f, 1.0f) * 0.5f);
    return x > -1.0f && x < 1.0f ? 2.0f * t / (1.0f - t) : policy_exp(x) - 1.0f;
}

/* log x for x > 0 and normal: x = m 2^n with m in [sqrt(1/2), sqrt(2)), then 2 artanh((m - 1) / (m + 1)) as a series. */
static inline float policy_log(float x) {
    policy_bits bits;
    int32_t n;
    float s, z, p;
    bits.number = x;
    n = (int32_t)((bits.word - 0x3f3504f3u) >> 23);
    n = n >= 256 ? n - 512 : n;
    bits.word -= (uint32_t)n << 23;
    s = (bits.number - 1.0f) / (bits.number + 1.0f);
    z = s * s;
    p = 2.0f / 11.0f;
    p = p * z + 2.0f / 9.0f;
    p = p * z + 2.0f / 7.0f;
    p = p * z + 2.0f / 5.0f;
    p = p * z + 2.0f / 3.0f;
    p = p * z + 2.0f;
    return x == x ? (float)n * 0.693359375f + (p * s - (float)n * 2.12194440e-4f) : x;
}

/* log(1 + e^x) = max(x, 0) + log(1 + y) with y = e^-|x|; the rounding of 1 + y is put back to first order. */
static inline float policy_softplus(float x) {
    const float y = policy_exp(x < 0.0f ? x : -x), w = 1.0f + y;
    return (x < 0.0f ? 0.0f : x) + (policy_log(w) + (y - (w - 1.0f)) / w);
}

/* The probability that a standard normal is below x: e^(-x^2/2) P(1 / (1 + c|x|)) for the side that is below one half. */
static inline float policy_normal_below(float x) {
    const float s = 1.0f / (1.0f + 0.34f * (x < 0.0f ? -x : x));
    float p = -2.612151235e-02f, tail;
    p = p * s + 1.395044190e-01f;
    p = p * s - 2.731426399e-01f;
    p = p * s + 2.021936090e-01f;
    p = p * s - 4.472570112e-02f;
    p = p * s + 1.153620951e-01f;
    p = p * s + 1.151969560e-01f;
    p = p * s + 1.361122892e-01f;
    p = p * s + 1.356205000e-01f;
    tail = p * s * policy_exp(-0.5f * x * x);
    return x > 0.0f ? 1.0f - tail : tail;
}

static inline float policy_relu(float x) {
    return x <= 0.0f ? 0.0f : x;
}

static inline float policy_leaky_relu(float x) {
    return x > 0.0f ? x : 0.01f * x;
}

static inline float policy_elu(float x) {
    return x > 0.0f ? x : policy_expm1(x);
}

static inline float policy_silu(float x) {
    return x * policy_sigmoid(x);
}

static inline float policy_gelu(float x) {
    return x * policy_normal_below(x);
}

/* The most likely number of a Beta distribution, stretched to [-1, 1]. */
static inline float policy_beta_mode(float alpha, float beta) {
    const float mode = (alpha - 1.0f) / (alpha + beta - 2.0f);
    return 2.0f * policy_clamp(mode, 1e-6f, 1.0f - 1e-6f) - 1.0f;
}

/* y = W x + b, the sums from the first input to the last, 384 inputs at a time. */
static inline void policy_layer(int inputs, int outputs, const float *w, const float *b, const float *x, float *y) {
    int o, i, begin;
    for (o = 0; o < outputs; o++, w += inputs)
        for (begin = 0; begin < inputs; begin += 384) {
            const int end = inputs - begin > 384 ? begin + 384 : inputs;
            float sum = begin ? 0.0f : b[o];
            for (i = begin; i < end; i++) sum += x[i] * w[i];
            y[o] = begin ? sum + y[o] : sum;
        }
}

/* The sum of x[i] w[i] in four parts, i modulo 4. */
static inline float policy_dot(int n, const float *w, const float *x) {
    float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int i;
    for (i = 0; i < n; i++) part[i % 4] += x[i] * w[i];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

/* y = W x + b for up to 8 outputs: four sums each; the inputs after the last four are added to the bias. */
static inline void policy_dots(int inputs, int outputs, const float *w, const float *b, const float *x, float *y) {
    const int whole = inputs / 4 * 4;
    int o, i;
    for (o = 0; o < outputs; o++, w += inputs) {
        float rest = b[o];
        for (i = whole; i < inputs; i++) rest += x[i] * w[i];
        y[o] = rest + policy_dot(whole, w, x);
    }
}

/* The input of gate unit `j` of a memory: W x + b of the observation, or of the hidden state. */
static inline float policy_gate(int inputs, const float *w, const float *b, const float *x, int j) {
    return b[j] + policy_dot(inputs, w + (int32_t)j * inputs, x);
}

/* One step of a GRU: `h` is the hidden state, `next` has space for another one. */
static inline void policy_gru(int inputs, int size, const float *w_in, const float *b_in, const float *w_on, const float *b_on,
                              const float *x, float *h, float *next) {
    int j;
    for (j = 0; j < size; j++) {
        const float r = policy_sigmoid(policy_gate(inputs, w_in, b_in, x, j) + policy_gate(size, w_on, b_on, h, j));
        const float z = policy_sigmoid(policy_gate(inputs, w_in, b_in, x, size + j) + policy_gate(size, w_on, b_on, h, size + j));
        const float again = policy_gate(size, w_on, b_on, h, 2 * size + j);
        const float n = policy_tanh(policy_gate(inputs, w_in, b_in, x, 2 * size + j) + r * again);
        next[j] = n + z * (h[j] - n);
    }
    for (j = 0; j < size; j++) h[j] = next[j];
}

/* One step of an LSTM: `h` is the hidden state, followed by the cell; `next` has space for another hidden state. */
static inline void policy_lstm(int inputs, int size, const float *w_in, const float *b_in, const float *w_on, const float *b_on,
                               const float *x, float *h, float *next) {
    float *cell = h + size;
    int j;
    for (j = 0; j < size; j++) {
        const float i = policy_sigmoid(policy_gate(inputs, w_in, b_in, x, j) + policy_gate(size, w_on, b_on, h, j));
        const float f = policy_sigmoid(policy_gate(inputs, w_in, b_in, x, size + j) + policy_gate(size, w_on, b_on, h, size + j));
        const float g = policy_tanh(policy_gate(inputs, w_in, b_in, x, 2 * size + j) + policy_gate(size, w_on, b_on, h, 2 * size + j));
        const float o = policy_sigmoid(policy_gate(inputs, w_in, b_in, x, 3 * size + j) + policy_gate(size, w_on, b_on, h, 3 * size + j));
        cell[j] = f * cell[j] + i * g;
        next[j] = o * policy_tanh(cell[j]);
    }
    for (j = 0; j < size; j++) h[j] = next[j];
}

/* Write the probability of each option and return the most likely one; `allowed` is 0 for forbidden options, or NULL. */
static inline int32_t policy_choose(int options, const float *logit, const uint8_t *allowed, float *probs) {
    float highest = -3e38f, sum = 0.0f, inverse;
    int k, best = -1;
    for (k = 0; k < options; k++)
        if ((!allowed || allowed[k]) && logit[k] > highest) highest = logit[k];
    for (k = 0; k < options; k++) {
        probs[k] = !allowed || allowed[k] ? policy_exp(logit[k] - highest) : 0.0f;
        sum += probs[k];
        if (probs[k] > 0.0f && (best < 0 || logit[k] > logit[best])) best = k;
    }
    inverse = 1.0f / sum;
    for (k = 0; k < options; k++) probs[k] = probs[k] * inverse;
    return best < 0 ? 0 : best;
}
