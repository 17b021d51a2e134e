//! Results as JSON, and back: a later run may add to them.

use super::{Figure, Part, Peer, Results, Row, Series};
use crate::Fallible;
use serde_json::{Value, json};

impl Results {
    pub(crate) fn to_json(&self) -> Value {
        let parts: Vec<Value> = self.parts.iter().map(Part::to_json).collect();
        json!({ "machine": self.machine, "parts": parts })
    }

    pub(crate) fn from_json(value: &Value) -> Fallible<Results> {
        let parts = list(&value["parts"], Part::from_json)?;
        Ok(Results { machine: value["machine"].clone(), parts })
    }
}

impl Part {
    fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| row.to_json(&self.name)).collect();
        let series: Vec<Value> = self.series.iter().map(Series::to_json).collect();
        json!({
            "part": self.name, "title": self.title, "note": self.note, "rows": rows,
            "series": series,
        })
    }

    fn from_json(value: &Value) -> Fallible<Part> {
        Ok(Part {
            name: text(&value["part"])?,
            title: text(&value["title"])?,
            note: text(&value["note"])?,
            rows: list(&value["rows"], Row::from_json)?,
            series: list(&value["series"], Series::from_json)?,
        })
    }
}

impl Row {
    fn to_json(&self, part: &str) -> Value {
        json!({
            "part": part,
            "name": self.name,
            "what": self.what,
            "unit": self.unit,
            "weir": self.weir.to_json(),
            "peer": self.peer.as_ref().map(|peer| json!({
                "name": peer.name,
                "figure": peer.figure.map(Figure::to_json),
            })),
            "ratio": self.ratio(),
            "target": self.target().to_string(),
            "verdict": self.verdict().word(),
        })
    }

    /// What can be worked out again is not read.
    fn from_json(value: &Value) -> Fallible<Row> {
        let peer = match &value["peer"] {
            Value::Null => None,
            peer => {
                let figure = match &peer["figure"] {
                    Value::Null => None,
                    figure => Some(Figure::from_json(figure)?),
                };
                Some(Peer { name: text(&peer["name"])?, figure })
            }
        };
        Ok(Row {
            name: text(&value["name"])?,
            what: text(&value["what"])?,
            unit: text(&value["unit"])?,
            weir: Figure::from_json(&value["weir"])?,
            peer,
        })
    }
}

impl Figure {
    fn to_json(self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max, "count": self.count })
    }

    fn from_json(value: &Value) -> Fallible<Figure> {
        let (median, min) = (number(&value["median"])?, number(&value["min"])?);
        let (max, count) = (number(&value["max"])?, number(&value["count"])? as usize);
        Ok(Figure { median, min, max, count })
    }
}

impl Series {
    fn to_json(&self) -> Value {
        json!({ "plot": self.plot, "name": self.name, "points": self.points })
    }

    fn from_json(value: &Value) -> Fallible<Series> {
        let point = |point: &Value| Ok((number(&point[0])?, number(&point[1])?));
        let points = list(&value["points"], point)?;
        Ok(Series { plot: text(&value["plot"])?, name: text(&value["name"])?, points })
    }
}

fn list<T>(value: &Value, read: impl Fn(&Value) -> Fallible<T>) -> Fallible<Vec<T>> {
    value.as_array().ok_or("results without a list")?.iter().map(read).collect()
}

fn text(value: &Value) -> Fallible<String> {
    Ok(value.as_str().ok_or("results without a text")?.to_owned())
}

fn number(value: &Value) -> Fallible<f64> {
    Ok(value.as_f64().ok_or("results without a number")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Samples;

    #[test]
    fn what_was_left_is_read_again() {
        let samples = |values: &[f64]| Samples::of(values.iter().copied());
        let row = Row::alone("startup.init", ("start", "µs"), samples(&[1.5, 2.0]).expect("two"));
        let absent = row.clone().beside("tini", None);
        let present = row.clone().beside("tini", samples(&[4.0]));
        let point = (1.0, 2.5);
        let series = Series { plot: "memory".into(), name: "weir".into(), points: vec![point] };
        let mut part = Part::new("startup", "Start", "A note.".into());
        part.rows = vec![row, absent, present];
        part.series = vec![series];
        let results = Results { machine: json!({ "cpus": 2 }), parts: vec![part] };
        let read = Results::from_json(&results.to_json()).expect("readable");
        assert_eq!(read, results);
    }
}
