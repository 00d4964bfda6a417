//! NCCL: collectives over several GPUs of one process.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;

use super::device::{Address, Device, Stream};
use super::status::{GpuLibraryError, Library, OpenError};
use crate::dlopen;
use crate::reference::Format;

type Comm = *mut c_void;

functions! {
    /// Unchanged from 2.11 to 2.30.
    Calls {
        version = c"ncclGetVersion"(*mut c_int);
        init = c"ncclCommInitAll"(*mut Comm, c_int, *const c_int);
        unique = c"ncclGetUniqueId"(*mut UniqueId);
        init_rank = c"ncclCommInitRank"(*mut Comm, c_int, UniqueId, c_int);
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

/// `ncclUniqueId`: what all ranks of a communicator are given.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UniqueId(pub(crate) [u8; 128]);

/// `ncclDataType_t`. Formats that no collective is given count as fp32.
fn kind(format: Format) -> c_int {
    match format {
        Format::Fp16 => 6,
        Format::Bf16 => 9,
        _ => FLOAT,
    }
}

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

/// What to run; `count` is in elements of one rank's smaller side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    /// From rank 0.
    Broadcast,
    /// Each rank to the next, the last to the first.
    Ring,
    /// From each rank to each a part of its own, `count` elements long.
    AllToAll,
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

    /// An id for a communicator whose ranks are processes.
    pub(crate) fn unique_id(&self) -> Result<UniqueId, GpuLibraryError> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the pointer is to a living id.
        self.done("ncclGetUniqueId", unsafe { (self.calls.unique)(&raw mut id) })?;
        Ok(id)
    }

    /// Connects this process as one rank of several, on the one device given.
    pub(crate) fn join<'a>(
        &'a self,
        devices: &'a [Device; 1],
        id: UniqueId,
        (rank, size): (c_int, c_int),
    ) -> Result<Ranks<'a>, GpuLibraryError> {
        devices[0].make_current()?;
        let mut comm = null_mut();
        // SAFETY: the pointer is to a living handle; the id is one of ncclGetUniqueId.
        let code = unsafe { (self.calls.init_rank)(&raw mut comm, size, id, rank) };
        self.done("ncclCommInitRank", code)?;
        let streams = vec![devices[0].stream()?];
        Ok(Ranks { nccl: self, devices, comms: vec![comm], streams })
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
        (collective, format): (Collective, Format),
        count: usize,
        buffers: &[(Address, Address)],
    ) -> Result<(), GpuLibraryError> {
        let calls = &self.nccl.calls;
        let kind = kind(format);
        let part = (count * format.size()) as Address;
        let size = c_int::try_from(self.comms.len()).unwrap_or(1);
        self.group(|rank, comm, stream| {
            let (source, target) = buffers[rank];
            let own = c_int::try_from(rank).unwrap_or(0);
            // SAFETY: the caller's memory is alive and long enough: `count` elements, on the gathering side times ranks.
            unsafe {
                match collective {
                    Collective::AllReduce => {
                        (calls.all_reduce)(source, target, count, kind, SUM, comm, stream)
                    }
                    Collective::AllGather => (calls.all_gather)(source, target, count, kind, comm, stream),
                    Collective::ReduceScatter => {
                        (calls.reduce_scatter)(source, target, count, kind, SUM, comm, stream)
                    }
                    Collective::Broadcast => (calls.broadcast)(source, target, count, kind, 0, comm, stream),
                    Collective::Ring => {
                        let sent = (calls.send)(source, count, kind, (own + 1) % size, comm, stream);
                        let from = (own + size - 1) % size;
                        let received = (calls.receive)(target, count, kind, from, comm, stream);
                        if sent == 0 { received } else { sent }
                    }
                    Collective::AllToAll => {
                        let each = (0..size).zip((0..).map(|at| at * part)).map(|(other, offset)| {
                            let sent = (calls.send)(source + offset, count, kind, other, comm, stream);
                            let received = (calls.receive)(target + offset, count, kind, other, comm, stream);
                            if sent == 0 { received } else { sent }
                        });
                        each.fold(0, |first, code| if first == 0 { code } else { first })
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
