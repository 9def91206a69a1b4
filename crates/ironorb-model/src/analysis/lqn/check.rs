//! The rules of LQNX, as far as we write it: which elements stand where and in which order, what their attributes are, and
//! that names lead somewhere. Its schema knows the same rules; solvers know the last one better than the schema does.

use std::collections::BTreeSet;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// What of a text is against the rules; empty if nothing is.
pub fn check(text: &str) -> Vec<String> {
    let root = match read(text) {
        Ok(root) => root,
        Err(error) => return vec![format!("it is no well-formed XML: {error}")],
    };
    let mut problems = Vec::new();
    match root.name.as_str() {
        "lqn-model" => {
            check_element(&root, RULES_MODEL, "", &mut problems);
            check_names(&root, &mut problems);
        }
        other => problems.push(format!("its root is `{other}` instead of `lqn-model`")),
    }
    problems
}

#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Element>,
}

impl Element {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn own_name(&self) -> &str {
        self.attribute("name").unwrap_or_default()
    }

    fn children(&self, name: &'static str) -> impl Iterator<Item = &Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// All elements of this name below.
    fn all<'a>(&'a self, names: &[&str], found: &mut Vec<&'a Element>) {
        for child in &self.children {
            if names.contains(&child.name.as_str()) {
                found.push(child);
            }
            child.all(names, found);
        }
    }
}

fn read(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(start) => open.push(element(&start)?),
            Event::Empty(start) => {
                let element = element(&start)?;
                open.last_mut().ok_or("nothing is open")?.children.push(element);
            }
            Event::End(_) => {
                let done = open.pop().ok_or("nothing is open")?;
                open.last_mut().ok_or("nothing is open")?.children.push(done);
            }
            Event::Text(text) if !text.trim_ascii().is_empty() => {
                return Err("text stands between elements".to_owned());
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (open.len(), open.pop()) {
        (1, Some(mut whole)) if whole.children.len() == 1 => Ok(whole.children.remove(0)),
        _ => Err("it has not exactly one root, or ends too early".to_owned()),
    }
}

fn element(start: &BytesStart<'_>) -> Result<Element, String> {
    let name = start.name().as_ref().to_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .map_err(|error| error.to_string())?;
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element { name, attributes, children: Vec::new() })
}

/// What an element may have.
struct Rules {
    attributes: &'static [(&'static str, Kind, bool)],
    /// In this order.
    children: &'static [Slot],
}

/// What stands at one place among the children of an element.
struct Slot {
    names: &'static [&'static str],
    least: usize,
    most: usize,
    rules: fn(&str) -> &'static Rules,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// From 0 on, finite.
    Number,
    /// Whole, from 1 on.
    Count,
    Word(&'static [&'static str]),
}

impl Kind {
    fn takes(self, value: &str) -> bool {
        match self {
            Kind::Text => true,
            Kind::Number => value.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
            Kind::Count => value.parse::<u32>().is_ok_and(|number| number > 0),
            Kind::Word(words) => words.contains(&value),
        }
    }
}

fn check_element(element: &Element, rules: &Rules, above: &str, problems: &mut Vec<String>) {
    let path = format!("{above}/{}", element.name);
    let path = match element.attribute("name") {
        Some(name) => format!("{path}[{name}]"),
        None => path,
    };
    for (name, value) in &element.attributes {
        match rules.attributes.iter().find(|(known, ..)| known == name) {
            None => problems.push(format!("{path}: `{name}` is no attribute of it")),
            Some((_, kind, _)) if !kind.takes(value) => {
                problems.push(format!("{path}: `{name}` cannot be `{value}`"))
            }
            Some(_) => {}
        }
    }
    for (name, ..) in
        rules.attributes.iter().filter(|(name, _, needed)| *needed && element.attribute(name).is_none())
    {
        problems.push(format!("{path}: `{name}` is missing"));
    }
    let mut rest = element.children.as_slice();
    for slot in rules.children {
        let count = rest.iter().take_while(|child| slot.names.contains(&child.name.as_str())).count();
        if count < slot.least || count > slot.most {
            problems.push(format!("{path}: `{}` stands there {count} times", slot.names.join("` or `")));
        }
        let (here, behind) = rest.split_at(count);
        here.iter().for_each(|child| check_element(child, (slot.rules)(&child.name), &path, problems));
        rest = behind;
    }
    if let Some(stray) = rest.first() {
        problems.push(format!("{path}: `{}` does not belong here", stray.name));
    }
}

/// Names are unique and lead somewhere.
fn check_names(root: &Element, problems: &mut Vec<String>) {
    let tasks: Vec<&Element> = root.children("processor").flat_map(|it| it.children("task")).collect();
    let entries: Vec<&Element> = tasks.iter().flat_map(|task| task.children("entry")).collect();
    unique("processor", root.children("processor"), problems);
    unique("task", tasks.iter().copied(), problems);
    let names = unique("entry", entries.iter().copied(), problems);
    let mut calls = Vec::new();
    root.all(&["synch-call", "asynch-call"], &mut calls);
    let of_clients: BTreeSet<&str> = tasks
        .iter()
        .filter(|task| task.attribute("scheduling") == Some("ref"))
        .flat_map(|task| task.children("entry").map(Element::own_name))
        .collect();
    for call in calls {
        let to = call.attribute("dest").unwrap_or_default();
        if !names.contains(to) {
            problems.push(format!("`{to}` is called and is no entry"));
        }
        if of_clients.contains(to) {
            problems.push(format!("`{to}` is called and is an entry of clients"));
        }
    }
    tasks.into_iter().for_each(|task| check_graph(task, problems));
}

fn check_graph(task: &Element, problems: &mut Vec<String>) {
    let name = task.own_name();
    let graph = task.children("task-activities").next();
    let activities: Vec<&Element> = graph.iter().flat_map(|graph| graph.children("activity")).collect();
    let known = unique("activity", activities.iter().copied(), problems);
    let mut mentioned = Vec::new();
    for step in graph.iter().flat_map(|graph| graph.children("precedence")) {
        step.all(&["activity"], &mut mentioned);
    }
    graph
        .iter()
        .flat_map(|it| it.children("reply-entry"))
        .for_each(|it| it.all(&["reply-activity"], &mut mentioned));
    for activity in mentioned {
        if !known.contains(activity.own_name()) {
            problems.push(format!("`{}` is no activity of `{name}`", activity.own_name()));
        }
    }
    let begun: Vec<&str> = activities.iter().filter_map(|it| it.attribute("bound-to-entry")).collect();
    for entry in task.children("entry") {
        let beginnings = begun.iter().filter(|begun| **begun == entry.own_name()).count();
        let needed = usize::from(entry.attribute("type") == Some("NONE"));
        if beginnings != needed {
            problems.push(format!(
                "entry `{}` begins with {beginnings} activities instead of {needed}",
                entry.own_name()
            ));
        }
    }
    let own: BTreeSet<&str> = task.children("entry").map(Element::own_name).collect();
    let answered = graph.iter().flat_map(|it| it.children("reply-entry")).map(Element::own_name);
    for entry in begun.into_iter().chain(answered) {
        if !own.contains(entry) {
            problems.push(format!("`{entry}` is no entry of `{name}`"));
        }
    }
}

fn unique<'a>(
    what: &str,
    elements: impl Iterator<Item = &'a Element>,
    problems: &mut Vec<String>,
) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for element in elements {
        if !names.insert(element.own_name()) {
            problems.push(format!("two {what} elements are named `{}`", element.own_name()));
        }
    }
    names
}

const ANY: usize = usize::MAX;

const RULES_MODEL: &Rules = &Rules {
    attributes: &[("name", Kind::Text, true), ("description", Kind::Text, false)],
    children: &[
        Slot { names: &["solver-params"], least: 1, most: 1, rules: |_| RULES_PARAMETERS },
        Slot { names: &["processor"], least: 1, most: ANY, rules: |_| RULES_PROCESSOR },
    ],
};

const RULES_PARAMETERS: &Rules = &Rules {
    attributes: &[
        ("comment", Kind::Text, false),
        ("conv_val", Kind::Number, false),
        ("it_limit", Kind::Count, false),
        ("print_int", Kind::Count, false),
        ("underrelax_coeff", Kind::Number, false),
    ],
    children: &[],
};

const RULES_PROCESSOR: &Rules = &Rules {
    attributes: &[
        ("name", Kind::Text, true),
        ("multiplicity", Kind::Count, false),
        ("scheduling", Kind::Word(&["fcfs", "ps", "pp", "inf", "rand", "hol"]), false),
        ("quantum", Kind::Number, false),
    ],
    children: &[Slot { names: &["task"], least: 1, most: ANY, rules: |_| RULES_TASK }],
};

const RULES_TASK: &Rules = &Rules {
    attributes: &[
        ("name", Kind::Text, true),
        ("multiplicity", Kind::Count, false),
        ("scheduling", Kind::Word(&["ref", "fcfs", "pri", "hol", "inf"]), false),
        ("think-time", Kind::Number, false),
    ],
    children: &[
        Slot { names: &["entry"], least: 1, most: ANY, rules: |_| RULES_ENTRY },
        Slot { names: &["task-activities"], least: 0, most: 1, rules: |_| RULES_GRAPH },
    ],
};

const RULES_ENTRY: &Rules = &Rules {
    attributes: &[
        ("name", Kind::Text, true),
        ("type", Kind::Word(&["PH1PH2", "NONE"]), true),
        ("open-arrival-rate", Kind::Number, false),
    ],
    children: &[Slot { names: &["entry-phase-activities"], least: 0, most: 1, rules: |_| RULES_PHASES }],
};

const RULES_PHASES: &Rules = &Rules {
    attributes: &[],
    children: &[Slot { names: &["activity"], least: 1, most: 3, rules: |_| RULES_PHASE }],
};

const CALLS: Slot =
    Slot { names: &["synch-call", "asynch-call"], least: 0, most: ANY, rules: |_| RULES_CALL };

const RULES_PHASE: &Rules = &Rules {
    attributes: &[
        ("name", Kind::Text, true),
        ("host-demand-mean", Kind::Number, true),
        ("host-demand-cvsq", Kind::Number, false),
        ("call-order", Kind::Word(&["STOCHASTIC", "DETERMINISTIC"]), false),
        ("phase", Kind::Word(&["1", "2", "3"]), true),
    ],
    children: &[CALLS],
};

const RULES_ACTIVITY: &Rules = &Rules {
    attributes: &[
        ("name", Kind::Text, true),
        ("host-demand-mean", Kind::Number, true),
        ("host-demand-cvsq", Kind::Number, false),
        ("call-order", Kind::Word(&["STOCHASTIC", "DETERMINISTIC"]), false),
        ("bound-to-entry", Kind::Text, false),
    ],
    children: &[CALLS],
};

const RULES_CALL: &Rules =
    &Rules { attributes: &[("dest", Kind::Text, true), ("calls-mean", Kind::Number, true)], children: &[] };

const RULES_GRAPH: &Rules = &Rules {
    attributes: &[],
    children: &[
        Slot { names: &["activity"], least: 1, most: ANY, rules: |_| RULES_ACTIVITY },
        Slot { names: &["precedence"], least: 0, most: ANY, rules: |_| RULES_STEP },
        Slot { names: &["reply-entry"], least: 0, most: ANY, rules: |_| RULES_REPLY },
    ],
};

const RULES_STEP: &Rules = &Rules {
    attributes: &[],
    children: &[
        Slot { names: &["pre", "pre-AND"], least: 1, most: 1, rules: |name| mentions(name) },
        Slot { names: &["post", "post-AND"], least: 0, most: 1, rules: |name| mentions(name) },
    ],
};

/// The rules of what mentions activities.
fn mentions(name: &str) -> &'static Rules {
    match name {
        "pre" | "post" => RULES_ONE,
        _ => RULES_SEVERAL,
    }
}

const RULES_ONE: &Rules = &Rules {
    attributes: &[],
    children: &[Slot { names: &["activity"], least: 1, most: 1, rules: |_| RULES_MENTION }],
};

const RULES_SEVERAL: &Rules = &Rules {
    attributes: &[],
    children: &[Slot { names: &["activity"], least: 1, most: ANY, rules: |_| RULES_MENTION }],
};

const RULES_MENTION: &Rules = &Rules { attributes: &[("name", Kind::Text, true)], children: &[] };

const RULES_REPLY: &Rules = &Rules {
    attributes: &[("name", Kind::Text, true)],
    children: &[Slot { names: &["reply-activity"], least: 1, most: ANY, rules: |_| RULES_MENTION }],
};
