//! The contract of the images: what they promise, shown in real containers, for every
//! engine and every image. `images/contract/run` brings the engines and the images.
//!
//! Words on the command line choose the checks whose name, engine or image has them all.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod bundle;
mod checks;
mod container;
mod engine;
mod left;

use checks::Check;
use container::Cell;
use engine::Engine;
use std::any::Any;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const ENGINES: [Engine; 3] = [Engine::PodmanRunc, Engine::PodmanCrun, Engine::Docker];
const IMAGES: [&str; 3] = ["alpine", "bookworm", "trixie"];

/// How many containers run at once: each waits for its engine more than it works.
const AT_ONCE: usize = 3;

fn cells() -> Vec<Cell> {
    let of = |engine| IMAGES.map(|image| Cell { engine, image });
    // Another architecture, under an emulator.
    let emulated = Cell { engine: Engine::PodmanRunc, image: "arm64" };
    ENGINES.into_iter().flat_map(of).chain([emulated]).collect()
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|&text| text.to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// What became of each check in each cell, by their places in the lists.
type Verdicts = HashMap<(usize, usize), Result<(), String>>;

fn show_all(tasks: &[(usize, usize)], checks: &[&Check], cells: &[Cell]) -> Verdicts {
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(Verdicts::new());
    let work = || {
        while let Some(&(check, cell)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let show = || (checks[check].show)(cells[cell]);
            let verdict = catch_unwind(show).map_err(|panic| message(&*panic));
            verdicts.lock().unwrap().insert((check, cell), verdict);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    verdicts.into_inner().unwrap()
}

/// The table: a line per check, a column per engine and image.
fn print(checks: &[&Check], cells: &[Cell], verdicts: &Verdicts) {
    let engines = cells.iter().map(|cell| format!("{:<9}", cell.engine.to_string()));
    println!("{:<52}{}", "", engines.collect::<String>().trim_end());
    let images = cells.iter().map(|cell| format!("{:<9}", cell.image));
    println!("{:<52}{}", "", images.collect::<String>().trim_end());
    for (at, check) in checks.iter().enumerate() {
        let words = (0..cells.len()).map(|cell| match verdicts.get(&(at, cell)) {
            Some(Ok(())) => "ok",
            Some(Err(_)) => "FAILED",
            None => "-",
        });
        let line: String = words.map(|word| format!("{word:<9}")).collect();
        if !line.replace('-', " ").trim().is_empty() {
            println!("{:<52}{}", check.name, line.trim_end());
        }
    }
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let checks: Vec<&Check> = checks::all().collect();
    let cells = cells();
    let is_wanted = |check: &Check, cell: &Cell| {
        let name = format!("{} {} {}", check.name, cell.engine, cell.image);
        (check.is_for)(*cell) && wanted.iter().all(|word| name.contains(word.as_str()))
    };
    let every = |check| (0..cells.len()).map(move |cell| (check, cell));
    let tasks: Vec<(usize, usize)> = (0..checks.len())
        .flat_map(every)
        .filter(|&(check, cell)| is_wanted(checks[check], &cells[cell]))
        .collect();
    // Told with the check's name, at the end.
    std::panic::set_hook(Box::new(|_| {}));
    let verdicts = show_all(&tasks, &checks, &cells);
    print(&checks, &cells, &verdicts);
    for (check, cell) in &tasks {
        if let Err(why) = &verdicts[&(*check, *cell)] {
            let Cell { engine, image } = cells[*cell];
            println!("\n{} ({engine}, {image}):\n{why}", checks[*check].name);
        }
    }
    let failed = verdicts.values().filter(|verdict| verdict.is_err()).count();
    println!("\n{} passed, {failed} failed", verdicts.len() - failed);
    if failed > 0 || tasks.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
