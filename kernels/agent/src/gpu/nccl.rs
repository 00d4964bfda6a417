//! NCCL: collectives over several GPUs of one process.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Device, Stream};
use super::status::{GpuLibraryError, Library, OpenError};
use crate::dlopen;

type Comm = *mut c_void;

functions! {
    /// Unchanged from 2.11 to 2.30.
    Calls {
        version = c"ncclGetVersion"(*mut c_int);
        init = c"ncclCommInitAll"(*mut Comm, c_int, *const c_int);
        destroy = c"ncclCommDestroy"(Comm);
        start = c"ncclGroupStart"();
        end = c"ncclGroupEnd"();
        all_reduce = c"ncclAllReduce"(Address, Address, usize, c_int, c_int, Comm, Stream);
        all_gather = c"ncclAllGather"(Address, Address, usize, c_int, Comm, Stream);
        reduce_scatter = c"ncclReduceScatter"(Address, Address, usize, c_int, c_int, Comm, Stream);
        broadcast = c"ncclBroadcast"(Address, Address, usize, c_int, c_int, Comm, Stream);
        send = c"ncclSend"(Address, usize, c_int, c_int, Comm, Stream);
        receive = c"ncclRecv"(Address, usize, c_int, c_int, Comm, Stream);
        scaled_sum = c"ncclRedOpCreatePreMulSum"(*mut c_int, *const c_void, c_int, c_int, Comm);
    }
}

/// `ncclFloat32` and `ncclSum`.
const FLOAT: c_int = 7;
const SUM: c_int = 0;

/// The library, before any GPU is touched.
pub(crate) struct Nccl {
    calls: Calls,
    library: dlopen::Library,
}

/// One rank for each entry of a list of GPUs.
pub(crate) struct Ranks<'a> {
    nccl: &'a Nccl,
    devices: &'a [Device],
    comms: Vec<Comm>,
    /// One for each rank: ranks that share a GPU wait for each other, and would for ever on one stream.
    streams: Vec<Stream>,
}

/// What to run; `count` is in fp32 elements of one rank's smaller side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    /// From rank 0.
    Broadcast,
    /// Each rank to the next, the last to the first.
    Ring,
}

impl Nccl {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let library = dlopen::Library::open(path)?;
        Ok(Self { calls: Calls::load(library)?, library })
    }

    /// 22703 for 2.27.3.
    pub(crate) fn version(&self) -> Result<c_int, GpuLibraryError> {
        let mut version = 0;
        // SAFETY: the pointer is to a living number.
        self.done("ncclGetVersion", unsafe { (self.calls.version)(&raw mut version) })?;
        Ok(version)
    }

    /// Connects one rank for each device of the list; a device may be there twice if NCCL allows it.
    pub(crate) fn connect<'a>(&'a self, devices: &'a [Device]) -> Result<Ranks<'a>, GpuLibraryError> {
        let ordinals: Vec<c_int> = devices.iter().map(|device| device.facts.ordinal).collect();
        let mut comms = vec![null_mut(); devices.len()];
        let count = c_int::try_from(devices.len()).unwrap_or(0);
        // SAFETY: both lists have as many entries as said.
        let code = unsafe { (self.calls.init)(comms.as_mut_ptr(), count, ordinals.as_ptr()) };
        self.done("ncclCommInitAll", code)?;
        let mut ranks = Ranks { nccl: self, devices, comms, streams: Vec::new() };
        for device in devices {
            device.make_current()?;
            ranks.streams.push(device.stream()?);
        }
        Ok(ranks)
    }

    /// A status with the library's own words for it, if it has any.
    fn done(&self, call: &str, code: c_int) -> Result<(), GpuLibraryError> {
        if code == 0 {
            return Ok(());
        }
        let mut fault = GpuLibraryError::new(Library::Nccl, call, code);
        // SAFETY: `const char *ncclGetLastError(ncclComm_t)`, from 2.13 on; a null communicator is allowed.
        let last = unsafe {
            self.library.function::<unsafe extern "C" fn(Comm) -> *const c_char>(c"ncclGetLastError")
        };
        if let Ok(last) = last {
            // SAFETY: as above.
            let text = unsafe { last(null_mut()) };
            if !text.is_null() {
                // SAFETY: NCCL keeps the text until its next error.
                unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().clone_into(&mut fault.message);
            }
        }
        Err(fault)
    }
}

impl Ranks<'_> {
    /// Puts the collective on every rank's stream. `buffers` are each rank's source and target.
    pub(crate) fn run(
        &self,
        collective: Collective,
        count: usize,
        buffers: &[(Address, Address)],
    ) -> Result<(), GpuLibraryError> {
        let calls = &self.nccl.calls;
        let size = c_int::try_from(self.comms.len()).unwrap_or(1);
        self.group(|rank, comm, stream| {
            let (source, target) = buffers[rank];
            let own = c_int::try_from(rank).unwrap_or(0);
            // SAFETY: the caller's memory is alive and long enough: `count` elements, on the gathering side times ranks.
            unsafe {
                match collective {
                    Collective::AllReduce => {
                        (calls.all_reduce)(source, target, count, FLOAT, SUM, comm, stream)
                    }
                    Collective::AllGather => (calls.all_gather)(source, target, count, FLOAT, comm, stream),
                    Collective::ReduceScatter => {
                        (calls.reduce_scatter)(source, target, count, FLOAT, SUM, comm, stream)
                    }
                    Collective::Broadcast => (calls.broadcast)(source, target, count, FLOAT, 0, comm, stream),
                    Collective::Ring => {
                        let sent = (calls.send)(source, count, FLOAT, (own + 1) % size, comm, stream);
                        let from = (own + size - 1) % size;
                        let received = (calls.receive)(target, count, FLOAT, from, comm, stream);
                        if sent == 0 { received } else { sent }
                    }
                }
            }
        })
        .map_err(|fault| GpuLibraryError { call: format!("{} ({collective:?})", fault.call), ..fault })
    }

    /// An all-reduce that multiplies every element by `factor` first: even with one rank a kernel has to run for it.
    pub(crate) fn scaled_sum(
        &self,
        factor: f32,
        count: usize,
        buffers: &[(Address, Address)],
    ) -> Result<(), GpuLibraryError> {
        let calls = &self.nccl.calls;
        let mut operations = Vec::with_capacity(self.comms.len());
        for comm in &self.comms {
            let mut operation = 0;
            // SAFETY: 1 is ncclScalarHostImmediate: the factor is read during the call.
            let code = unsafe {
                (calls.scaled_sum)(&raw mut operation, (&raw const factor).cast(), FLOAT, 1, *comm)
            };
            self.nccl.done("ncclRedOpCreatePreMulSum", code)?;
            operations.push(operation);
        }
        self.group(|rank, comm, stream| {
            let (source, target) = buffers[rank];
            // SAFETY: the caller's memory is alive and `count` elements long.
            unsafe { (calls.all_reduce)(source, target, count, FLOAT, operations[rank], comm, stream) }
        })
    }

    fn group(&self, each: impl Fn(usize, Comm, Stream) -> c_int) -> Result<(), GpuLibraryError> {
        // SAFETY: no parameter.
        self.nccl.done("ncclGroupStart", unsafe { (self.nccl.calls.start)() })?;
        let mut first = Ok(());
        for (rank, comm) in self.comms.iter().enumerate() {
            self.devices[rank].make_current()?;
            let answer = self.nccl.done("a collective", each(rank, *comm, self.streams[rank]));
            first = first.and(answer);
        }
        // SAFETY: no parameter; the group must end whatever happened in it.
        let end = self.nccl.done("ncclGroupEnd", unsafe { (self.nccl.calls.end)() });
        first.and(end)
    }
}

impl Drop for Ranks<'_> {
    fn drop(&mut self) {
        for (rank, comm) in self.comms.iter().enumerate() {
            let _ = self.devices[rank].make_current();
            // SAFETY: the communicator was made by ncclCommInitAll and is destroyed once.
            unsafe { (self.nccl.calls.destroy)(*comm) };
        }
    }
}

/// Sets a variable that NCCL reads when it starts.
pub(crate) fn environment(name: &str, value: &str) {
    // SAFETY: called before NCCL is loaded, while this process has one thread.
    unsafe { std::env::set_var(name, value) };
}
