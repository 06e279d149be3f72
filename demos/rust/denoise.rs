// The same as ../c/denoise.c, in Rust without crates: what denoise.h declares, by hand.
use std::alloc::{alloc, Layout};
use std::ffi::{c_char, c_int, c_void};
use std::io::{stdin, stdout, Read, Write};

#[repr(C)]
struct Port { name: *const c_char, dtype: *const c_char, is_output: c_int, axes: c_int, dims: *const usize, bytes: usize,
              axis: c_int, frames: usize, delay: usize, rate: f64 }

#[link(name = "denoise", kind = "static")]
extern "C" {
    fn denoise_size() -> usize;
    fn denoise_alignment() -> usize;
    fn denoise_ports(count: *mut c_int) -> *const Port;
    fn denoise_init(memory: *mut u8, bytes: usize, stream: *mut *mut c_void) -> c_int;
    fn denoise_step(stream: *mut c_void, inputs: *const *const f32, outputs: *const *mut f32) -> c_int;
    fn denoise_flush(stream: *mut c_void, rest: *const *const f32, frames: *const usize, outputs: *const *mut f32) -> c_int;
    fn denoise_valid(stream: *const c_void, output: c_int, first: *mut usize) -> usize;
}

fn main() -> std::io::Result<()> {
    let mut bytes = Vec::new();
    stdin().read_to_end(&mut bytes)?;
    let sound: Vec<f32> = bytes.chunks_exact(2).map(|v| i16::from_le_bytes([v[0], v[1]]) as f32 / 32768.0).collect();
    let (mut stream, mut first, mut made) = (std::ptr::null_mut(), 0, Vec::new());
    let frames = unsafe { (*denoise_ports(std::ptr::null_mut())).frames };
    let mut out = vec![0.0f32; frames];
    let memory = unsafe { alloc(Layout::from_size_align(denoise_size(), denoise_alignment()).unwrap()) };
    assert_eq!(unsafe { denoise_init(memory, denoise_size(), &mut stream) }, 0, "denoise_init");
    let pulses = sound.chunks_exact(frames);
    let rest = pulses.remainder();
    for pulse in pulses.map(Some).chain(std::iter::repeat(None)) {
        let code = match pulse {
            Some(pulse) => unsafe { denoise_step(stream, &pulse.as_ptr(), &out.as_mut_ptr()) },
            None => unsafe { denoise_flush(stream, &rest.as_ptr(), &rest.len(), &out.as_mut_ptr()) },
        };
        if code == 1 { break; } // DENOISE_ENDED: no pulse is left
        assert_eq!(code, 0, "denoise_step");
        let count = unsafe { denoise_valid(stream, 0, &mut first) };
        made.extend(out[first..first + count].iter().flat_map(|v| ((32767.0 * v.clamp(-1.0, 1.0)) as i16).to_le_bytes()));
    }
    stdout().write_all(&made)
}
