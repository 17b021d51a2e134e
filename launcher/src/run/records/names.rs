//! The names of one start's records, and what may stand there.

use super::{Records, Reserved};
use crate::place::Directory;
use crate::plan::{CapturePlan, Insistence, LogPlan, Plan, ReceiptForm, RecordName};
use crate::refusal::{Code, Refusal};
use crate::run::Captured;
use crate::voice::Voice;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use weir_common::sys::files;
use weir_common::{
    Errno, FACT_BYTES_MAX, Fact, Links, RECEIPT_BYTES_MAX, RECEIPT_V1_BYTES_MAX, Receipt, RunId,
};

/// Which record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Which {
    Fact,
    Receipt,
}

impl Which {
    pub(in crate::run) fn as_str(self) -> &'static str {
        match self {
            Which::Fact => "fact",
            Which::Receipt => "receipt",
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where one record goes.
pub(in crate::run) struct Named<'d> {
    pub(in crate::run) which: Which,
    pub(in crate::run) directory: &'d Directory,
    pub(super) record: &'d RecordName,
    pub(super) bytes_max: usize,
    pub(super) links: Links,
    only_of: Option<&'d RunId>,
}

impl<'d> Named<'d> {
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path_of(&self.record.name)
    }

    pub(in crate::run) fn name(&self) -> &'d OsStr {
        &self.record.name
    }

    /// Whether what has its name is such a record, for whoever wants to remove it.
    #[cold]
    #[inline(never)]
    pub(in crate::run) fn must_be_one(&self) -> Result<(), String> {
        let path = Path::new(&self.record.name);
        let read = match self.which {
            Which::Fact => Fact::read_at(self.directory, path).map(drop),
            Which::Receipt => match (Receipt::read_at(self.directory, path), self.only_of) {
                (Ok(Some(receipt)), Some(run_id)) if receipt.run_id != *run_id => {
                    return Err(format!("it is the receipt of run {}", receipt.run_id));
                }
                (read, _) => read.map(drop),
            },
        };
        read.map_err(|why| format!("it is no {}: {}", self.which, why.reason()))
    }
}

/// Where this start's records go.
pub(in crate::run) struct Names<'d> {
    fact: Option<Named<'d>>,
    receipt: Option<Named<'d>>,
    insistence: Insistence,
}

impl<'d> Names<'d> {
    /// The names of the records; refused where the receipt's would be in the way of the
    /// log's.
    pub(in crate::run) fn of(
        plan: &'d Plan,
        captured: Option<Captured<'d>>,
        receipt_directory: Option<&'d Directory>,
    ) -> Result<Names<'d>, Refusal> {
        let links = plan.links;
        let fact = captured.map(|Captured { plan, directory }| {
            let (which, bytes_max) = (Which::Fact, FACT_BYTES_MAX);
            Named { which, directory, record: &plan.fact, bytes_max, links, only_of: None }
        });
        let receipt = plan.receipt.as_ref().zip(receipt_directory).map(|(receipt, directory)| {
            let bytes_max = match receipt.form {
                ReceiptForm::V1 { .. } => RECEIPT_V1_BYTES_MAX,
                ReceiptForm::V2 { .. } => RECEIPT_BYTES_MAX,
            };
            let (which, record) = (Which::Receipt, &receipt.record);
            let only_of = receipt.only_of.as_ref();
            Named { which, directory, record, bytes_max, links, only_of }
        });
        if let (Some(captured), Some(receipt)) = (captured, &receipt) {
            must_not_clash(captured, receipt)?;
        }
        Ok(Names { fact, receipt, insistence: plan.insistence })
    }

    pub(in crate::run) fn iter(&self) -> impl Iterator<Item = &Named<'d>> {
        self.fact.iter().chain(&self.receipt)
    }

    /// A log whose records exist is sealed, and refused.
    pub(in crate::run) fn must_be_free(&self, captured: Captured<'_>) -> Result<(), Refusal> {
        match self.insistence {
            Insistence::Required => {
                self.iter().try_for_each(|record| must_be_free(captured.plan, record))
            }
            Insistence::Wished => Ok(()),
        }
    }

    /// Makes room for the records, so that a disk that fills up meanwhile still takes
    /// them.
    pub(in crate::run) fn reserve(&self, voice: &mut Voice) -> Result<Records<'_>, Refusal> {
        let mut reserve = |record| match (Reserved::new(record), self.insistence) {
            (Err(refusal), Insistence::Wished) => {
                voice.failure(&refusal.message());
                Ok(Reserved::later(record))
            }
            (reserved, _) => reserved,
        };
        Ok(Records {
            fact: self.fact.as_ref().map(&mut reserve).transpose()?,
            receipt: self.receipt.as_ref().map(reserve).transpose()?,
        })
    }
}

/// Refuses a receipt that has one of the log's names.
fn must_not_clash(captured: Captured<'_>, receipt: &Named<'_>) -> Result<(), Refusal> {
    let fail = |errno| Refusal::new(Code::System, "cannot look at directories").because(errno);
    let plan = captured.plan;
    let log = match &plan.log {
        LogPlan::Named(log) => Some(log.name.as_os_str().to_owned()),
        LogPlan::Inherited { .. } => None,
    };
    let mut taken = plan.fact.all().into_iter().chain([plan.fifo.clone()]).chain(log);
    if !taken.any(|taken| receipt.record.all().contains(&taken)) {
        return Ok(());
    }
    let (one, other) = (captured.directory.identity(), receipt.directory.identity());
    match one.map_err(fail)? == other.map_err(fail)? {
        false => Ok(()),
        true => {
            let refusal = Refusal::new(Code::Usage, "cannot publish receipt").at(receipt.path());
            Err(refusal.because("its name is the log's, or one of its records'"))
        }
    }
}

fn must_be_free(plan: &CapturePlan, record: &Named<'_>) -> Result<(), Refusal> {
    let refusal = || Refusal::new(Code::LogSealed, "cannot continue log").at(plan.log_path());
    let (what, path) = (record.which, record.path());
    match files::status_at(record.directory, record.name()) {
        Err(Errno::ENOENT) => Ok(()),
        Err(errno) => {
            let refusal = Refusal::new(Code::System, format!("cannot look for {what}"));
            Err(refusal.at(path).because(errno))
        }
        Ok(_) => Err(refusal().because(format_args!("its {what} {} exists", path.display())).hint(
            "an attempt is run once: use another log, --root with a new attempt id, or --fresh",
        )),
    }
}
