//! SHA-256 without a dependency, with the processor's own instructions where it has them.
//!
//! The one file of the agent with processor instructions in it.
#![expect(unsafe_code, reason = "the processor's SHA instructions have no safe form before their detection")]

const BLOCK: usize = 64;

const START: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

#[rustfmt::skip]
const K: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// Takes whole blocks into the state.
type Compress = fn(&mut [u32; 8], &[u8]);

/// Hashes what is fed to it.
pub(crate) struct Sha256 {
    state: [u32; 8],
    /// What did not fill a block yet.
    rest: [u8; BLOCK],
    fed: u64,
    compress: Compress,
}

impl Sha256 {
    pub(crate) fn new() -> Self {
        Self { state: START, rest: [0; BLOCK], fed: 0, compress: fastest() }
    }

    /// Takes the next bytes.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        let held = self.held();
        self.fed += bytes.len() as u64;
        if held > 0 {
            let taken = bytes.len().min(BLOCK - held);
            self.rest[held..held + taken].copy_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if held + taken < BLOCK {
                return;
            }
            (self.compress)(&mut self.state, &self.rest);
        }
        let whole = bytes.len() / BLOCK * BLOCK;
        (self.compress)(&mut self.state, &bytes[..whole]);
        let left = &bytes[whole..];
        self.rest[..left.len()].copy_from_slice(left);
    }

    /// The SHA-256 of everything taken, as lower-case hex.
    pub(crate) fn finish(mut self) -> String {
        let bits = self.fed * 8;
        let held = self.held();
        let padding = if held < 56 { 56 - held } else { 120 - held };
        let mut tail = [0; 128];
        tail[0] = 0x80;
        tail[padding..padding + 8].copy_from_slice(&bits.to_be_bytes());
        self.update(&tail[..padding + 8]);
        self.state.iter().map(|word| format!("{word:08x}")).collect()
    }

    fn held(&self) -> usize {
        usize::try_from(self.fed % BLOCK as u64).unwrap_or_default()
    }
}

/// The fastest way this processor has.
fn fastest() -> Compress {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("sha")
        && std::is_x86_feature_detected!("ssse3")
        && std::is_x86_feature_detected!("sse4.1")
    {
        return |state, blocks| {
            // SAFETY: the three features were detected just above.
            unsafe { x86::compress(state, blocks) }
        };
    }
    portable
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn portable(state: &mut [u32; 8], blocks: &[u8]) {
    for block in blocks.chunks_exact(BLOCK) {
        let mut words = [0_u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for i in 16..64 {
            let (x, y) = (words[i - 15], words[i - 2]);
            let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
            let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
            words[i] = words[i - 16].wrapping_add(s0).wrapping_add(words[i - 7]).wrapping_add(s1);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        for (word, key) in words.iter().zip(K) {
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(key).wrapping_add(*word);
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
            (d, c, b, a) = (c, b, a, t1.wrapping_add(s0.wrapping_add(majority)));
        }
        for (word, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(new);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi64x,
        _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8,
        _mm_shuffle_epi32, _mm_storeu_si128,
    };

    use super::{BLOCK, K};

    /// The state lies in two registers, ABEF and CDGH, as the instructions want it.
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    pub(super) fn compress(state: &mut [u32; 8], blocks: &[u8]) {
        let big_endian = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
        let badc = _mm_shuffle_epi32::<0xB1>(load(words(state, 0)));
        let efgh = _mm_shuffle_epi32::<0x1B>(load(words(state, 4)));
        let mut abef = _mm_alignr_epi8::<8>(badc, efgh);
        let mut cdgh = _mm_blend_epi16::<0xF0>(efgh, badc);
        for block in blocks.chunks_exact(BLOCK) {
            let (abef_before, cdgh_before) = (abef, cdgh);
            let mut w = [abef; 4];
            for (i, slot) in w.iter_mut().enumerate() {
                let bytes = block[16 * i..].first_chunk().expect("a block has four parts of 16 bytes");
                *slot = _mm_shuffle_epi8(load(bytes), big_endian);
            }
            for round in 0..16 {
                if round > 3 {
                    // The four oldest words leave, the next four come.
                    let mixed = _mm_sha256msg1_epu32(w[0], w[1]);
                    let mixed = _mm_add_epi32(mixed, _mm_alignr_epi8::<4>(w[3], w[2]));
                    w = [w[1], w[2], w[3], _mm_sha256msg2_epu32(mixed, w[3])];
                }
                let next = if round > 3 { w[3] } else { w[round] };
                let sum = _mm_add_epi32(next, load(words(&K, 4 * round)));
                cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
                abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32::<0x0E>(sum));
            }
            abef = _mm_add_epi32(abef, abef_before);
            cdgh = _mm_add_epi32(cdgh, cdgh_before);
        }
        let feba = _mm_shuffle_epi32::<0x1B>(abef);
        let dchg = _mm_shuffle_epi32::<0xB1>(cdgh);
        let (abcd, efgh) = (_mm_blend_epi16::<0xF0>(feba, dchg), _mm_alignr_epi8::<8>(dchg, feba));
        let (first, second) = state.split_at_mut(4);
        store(first.first_chunk_mut().expect("eight words"), abcd);
        store(second.first_chunk_mut().expect("eight words"), efgh);
    }

    /// Four words as the bytes they lie in.
    fn words(all: &[u32], from: usize) -> &[u8; 16] {
        let four: &[u32; 4] = all[from..].first_chunk().expect("four words from there");
        // SAFETY: four words are sixteen bytes, and bytes need no alignment.
        unsafe { &*four.as_ptr().cast::<[u8; 16]>() }
    }

    #[target_feature(enable = "sse2")]
    fn load(bytes: &[u8; 16]) -> __m128i {
        // SAFETY: sixteen bytes are readable there, and this load needs no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "sse2")]
    fn store(words: &mut [u32; 4], value: __m128i) {
        // SAFETY: sixteen bytes are writable there, and this store needs no alignment.
        unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), value) }
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest as _;

    use super::*;

    fn hash(compress: Compress, bytes: &[u8], step: usize) -> String {
        let mut hash = Sha256 { compress, ..Sha256::new() };
        bytes.chunks(step).for_each(|part| hash.update(part));
        hash.finish()
    }

    #[test]
    fn both_ways_agree_with_sha2_for_every_length_and_step() {
        let bytes: Vec<u8> = (0..=255).cycle().take(400).collect();
        for length in 0..bytes.len() {
            let known = sha2::Sha256::digest(&bytes[..length]);
            let known: String = known.iter().map(|byte| format!("{byte:02x}")).collect();
            for step in [1, 63, 64, 65, 400] {
                assert_eq!(hash(portable, &bytes[..length], step), known, "{length} by {step}");
                assert_eq!(hash(fastest(), &bytes[..length], step), known, "{length} by {step}");
            }
        }
    }
}
