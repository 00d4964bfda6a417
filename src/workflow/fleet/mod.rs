//! Checks of an image on many nodes: through Slurm's `srun` or the system's `ssh`, or from files with their reports; of a file on this machine, too.

mod drain;
mod error;
mod here;
mod launched;
mod launcher;
mod limits;
mod node_job;
mod processes;
mod read_reports;
mod signed;
mod slurm;
mod ssh;
mod subject;
mod submit;

pub(crate) use drain::drain_node;
pub use error::FleetError;
pub(crate) use here::{HERE, ask_here};
pub(crate) use launcher::Launcher;
pub(crate) use limits::Limits;
pub(crate) use node_job::{Asked, STEP, Screen};
pub(crate) use read_reports::{judged, read_reports};
pub(crate) use signed::Signed;
pub(crate) use slurm::{Answer, ask_slurm};
pub(crate) use ssh::{ask_ssh, hosts_of};
pub(crate) use subject::{NodeFile, Subject, is_image_file};
pub(crate) use submit::{Job, submit_jobs};
