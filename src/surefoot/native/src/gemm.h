/* Matrix products C (+)= A·B at the sizes of a policy network: B in panels of NR columns, A with any strides, C by rows.
 *
 * One tile of C, MR rows by NR columns, stays in registers while k runs. Panels are the outer loop: a panel of B stays in the
 * first cache while all rows of A pass. */

#define NR (NV * VL)
#define KR 64  /* rows of A and B per pass if sums continue in C: with both by rows, more would not stay in the first cache */
#define KC 384 /* rows of B per panel: KC · NR floats are 12, 24 or 48 KB with 4, 8 or 16 lanes, which the first cache holds */

enum { WRITE, ADD, CONTINUE }; /* C = A·B; C += A·B; or the sums begin with C, which rounds as one long sum does */

INLINE void tile(const int mr, int k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb, float *c,
                 int64_t ldc, const float *bias, int how, int columns) {
    vf sum[MR][NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) {
        const vf first = bias ? load(bias + j * VL) : (vf){0};
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) sum[r][j] = how == CONTINUE ? load(c + r * ldc + j * VL) : first;
    }
    for (int i = 0; i < k; i++) {
        vf right[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) right[j] = load(b + j * VL);
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++) {
            const vf left = splat(a[r * row]);
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) sum[r][j] += left * right[j];
        }
        a += column;
        b += ldb;
    }
    if (columns == NR) {
#pragma GCC unroll 16
        for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) {
                float *at = c + r * ldc + j * VL;
                store(at, how == ADD ? sum[r][j] + load(at) : sum[r][j]);
            }
        return;
    }
    float edge[MR][NR];
#pragma GCC unroll 16
    for (int r = 0; r < mr; r++)
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) store(&edge[r][j * VL], sum[r][j]);
    for (int r = 0; r < mr; r++)
        for (int j = 0; j < columns; j++) c[r * ldc + j] = edge[r][j] + (how == ADD ? c[r * ldc + j] : 0.0f);
}

static void tiles(int m, int k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb, float *c,
                  int64_t ldc, const float *bias, int how, int columns) {
    int r = 0;
#define ROWS_OF(mr) tile(mr, k, a + r * row, row, column, b, ldb, c + r * ldc, ldc, bias, how, columns)
    /* The last 7 or 8 rows as 4 and the rest: a tile of one or two rows has too few independent sums. */
    for (; m - r >= MR && (MR != 6 || (m - r != 7 && m - r != 8)); r += MR) ROWS_OF(MR);
    for (; MR == 6 && m - r >= 7; r += 4) ROWS_OF(4);
#define REST_OF(mr) if (mr < MR && m - r == mr) ROWS_OF(mr)
    REST_OF(1);
    else REST_OF(2);
    else REST_OF(3);
    else REST_OF(4);
    else REST_OF(5);
    else REST_OF(6);
    else REST_OF(7);
#undef REST_OF
#undef ROWS_OF
}

/* C[m][n] (+)= A[m][k]·B with B packed: panel p begins at b + p·k·NR. C has space for whole panels unless `exact`. */
static void multiply(int m, int n, int k, const float *a, int64_t row, int64_t column, const float *b, float *c,
                     int64_t ldc, const float *bias, int add, int exact) {
    for (int k0 = 0; k0 < k; k0 += KC) {
        const int depth = k - k0 < KC ? k - k0 : KC;
        for (int j = 0; j < n; j += NR) {
            const int columns = exact && n - j < NR ? n - j : NR;
            tiles(m, depth, a + k0 * column, row, column, b + (int64_t)j * k + (int64_t)k0 * NR, NR, c + j, ldc,
                  bias && k0 == 0 ? bias + j : NULL, add || k0 > 0, columns);
        }
    }
}

/* C[m][n] += Aᵀ-like·B with B by rows, its rows padded to whole vectors at least; `packed` holds KC · NR floats. If C is
 * known to be zero and k is at most KC, the sums are taken in parts, with the same digits. */
static void multiply_rows(int m, int n, int k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb,
                          float *c, int64_t ldc, float *packed, int zero) {
    const int in_parts = zero && k <= KC && n % NR == 0, part = in_parts ? KR : KC;
    for (int k0 = 0; k0 < k; k0 += part) {
        const int depth = k - k0 < part ? k - k0 : part;
        for (int j = 0; j < n; j += NR) {
            const int columns = n - j < NR ? n - j : NR;
            const float *panel = b + (int64_t)k0 * ldb + j;
            int64_t stride = ldb;
            if (ldb > 288) { /* rows this far apart fall onto few cache sets and many pages */
                for (int i = 0; i < depth; i++)
                    for (int v = 0; v < NV; v++) store(packed + i * NR + v * VL, load(panel + i * ldb + v * VL));
                panel = packed;
                stride = NR;
            }
            tiles(m, depth, a + k0 * column, row, column, panel, stride, c + j, ldc, NULL, in_parts ? CONTINUE : ADD, columns);
        }
    }
}

/* Transpose a block of 8 by 8: to[d][j] = from[j][d]. */
INLINE void transpose_block(const float *from, int64_t from_row, float *to, int64_t to_row) {
    typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
    v8 a[8], b[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) a[j] = *(const v8 *)(from + j * from_row);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        b[2 * j] = __builtin_shufflevector(a[2 * j], a[2 * j + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        b[2 * j + 1] = __builtin_shufflevector(a[2 * j], a[2 * j + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
#pragma GCC unroll 2
    for (int h = 0; h < 8; h += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            a[h + j] = __builtin_shufflevector(b[h + j], b[h + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            a[h + j + 2] = __builtin_shufflevector(b[h + j], b[h + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        *(v8 *)(to + j * to_row) = __builtin_shufflevector(a[j], a[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(v8 *)(to + (j + 4) * to_row) = __builtin_shufflevector(a[j], a[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

/* W[outputs][inputs] as panels of Wᵀ: panels[p][i][j] = W[p·NR + j][i], 0 beyond the last output. */
static void pack_forward(const float *w, int outputs, int inputs, float *panels) {
    for (int o = 0; o < outputs; o += NR) {
        const int columns = outputs - o < NR ? outputs - o : NR, blocks = columns / 8 * 8, whole = inputs / 8 * 8;
        float *to = panels + (int64_t)o * inputs;
        const float *from = w + (int64_t)o * inputs;
        for (int j = 0; j < blocks; j += 8)
            for (int i = 0; i < whole; i += 8)
                transpose_block(from + (int64_t)j * inputs + i, inputs, to + (int64_t)i * NR + j, NR);
        for (int i = 0; i < inputs; i++)
            for (int j = i < whole ? blocks : 0; j < columns; j++) to[(int64_t)i * NR + j] = from[(int64_t)j * inputs + i];
    }
}

/* W[outputs][inputs] as panels of itself: panels[p][o][j] = W[o][p·NR + j], 0 beyond the last input. */
static void pack_backward(const float *w, int outputs, int inputs, float *panels) {
    for (int i = 0; i < inputs; i += NR) {
        const int columns = inputs - i < NR ? inputs - i : NR;
        float *to = panels + (int64_t)i * outputs;
        if (columns < NR)
            for (int o = 0; o < outputs; o++)
                for (int j = 0; j < columns; j++) to[o * NR + j] = w[(int64_t)o * inputs + i + j];
        else
            for (int o = 0; o < outputs; o++)
                for (int v = 0; v < NV; v++) store(to + o * NR + v * VL, load(w + (int64_t)o * inputs + i + v * VL));
    }
}
