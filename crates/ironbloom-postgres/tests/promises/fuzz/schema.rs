//! A random table with an index: how it is made and filled, and what is asked of it.

use ironbloom_testing::Random;

use super::kinds::Kind;

/// Numbers that rows are made of; conditions ask for some more.
const NUMBERS: u64 = 60;

/// Tells sets of rows `x` apart.
pub(crate) const DIGEST: &str =
    "count(*) || ' ' || coalesce(sum(hashtextextended(x::text, 0)::numeric), 0)";

/// A prepared statement and its calls.
pub(crate) struct Prepared {
    pub(crate) prepare: String,
    pub(crate) calls: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Logged,
    Unlogged,
    Temporary,
    Partitioned,
}

/// A table and its index, called like it with `_i`.
pub(crate) struct Schema<'a> {
    pub(crate) table: String,
    pub(crate) persistence: Persistence,
    columns: Vec<&'a Kind>,
    expression: bool,
    partial: bool,
    selectivity: u64,
}

fn number(random: &mut Random) -> String {
    random.below(NUMBERS + 10).to_string()
}

impl<'a> Schema<'a> {
    /// Of some of these types.
    pub(crate) fn new(table: String, kinds: &[&'a Kind], random: &mut Random) -> Self {
        let columns = (0..1 + random.index(8)).map(|_| kinds[random.index(kinds.len())]).collect();
        let persistence = match random.below(10) {
            0 => Persistence::Unlogged,
            1 => Persistence::Temporary,
            2 => Persistence::Partitioned,
            _ => Persistence::Logged,
        };
        Self {
            table,
            persistence,
            columns,
            expression: random.one_in(3),
            partial: random.one_in(4),
            selectivity: [3, 5, 5, 10][random.index(4)],
        }
    }

    pub(crate) fn create(&self, random: &mut Random) -> String {
        let table = &self.table;
        let column = |(i, kind): (usize, &&Kind)| format!("c{i} {}", self.of_table(kind.name));
        let columns: Vec<String> = self.columns.iter().enumerate().map(column).collect();
        let columns = format!("id serial, k int, note int default 0, {}", columns.join(", "));
        // Pages with few rows and much room: many pages, rows that come to sealed ones, and updates that stay on theirs.
        let room = format!("with (fillfactor = {})", [20, 20, 50, 100][random.index(4)]);
        let made = match self.persistence {
            Persistence::Logged => format!("create table {table} ({columns}) {room};"),
            Persistence::Unlogged => format!("create unlogged table {table} ({columns}) {room};"),
            Persistence::Temporary => format!("create temporary table {table} ({columns}) {room};"),
            Persistence::Partitioned => format!(
                "create table {table} ({columns}) partition by range (k);
                 create table {table}_low partition of {table} for values from (minvalue) to (30) {room};
                 create table {table}_high partition of {table} default {room};"
            ),
        };
        let mut setup: Vec<&str> = self.columns.iter().map(|kind| kind.setup).collect();
        setup.sort_unstable();
        setup.dedup();
        let setup = self.of_table(&setup.join("\n"));
        format!("{setup}\n{made}\n{}{}", self.index(""), self.insert(1_500))
    }

    /// A text of a kind, for this table.
    fn of_table(&self, text: &str) -> String {
        text.replace("TAB", &self.table)
    }

    /// Changes the type of a column, without the semicolon.
    pub(crate) fn alteration(&self, random: &mut Random) -> Option<String> {
        let column = random.index(self.columns.len());
        let changes = self.columns[column].changes;
        if changes.is_empty() {
            return None;
        }
        let change = changes[random.index(changes.len())].replace("COL", &format!("c{column}"));
        Some(self.of_table(&change))
    }

    /// A column of the index.
    pub(crate) fn column(&self, random: &mut Random) -> String {
        format!("c{}", random.index(self.columns.len()))
    }

    /// Makes the index; `how` is nothing or `concurrently`.
    pub(crate) fn index(&self, how: &str) -> String {
        let mut keys: Vec<String> = (0..self.columns.len()).map(|i| format!("c{i}")).collect();
        if self.expression {
            keys.push("(k % 7)".into());
        }
        let clause = if self.partial { " where k % 3 <> 0" } else { "" };
        format!(
            "create index {how} {0}_i on {0} using ironbloom ({1}) with (selectivity = {2}){clause};\n",
            self.table,
            keys.join(", "),
            self.selectivity
        )
    }

    /// A value of a column for the number `of`, in any of its forms, or null.
    fn any_value(&self, kind: &Kind, of: &str) -> String {
        let forms: Vec<String> = kind
            .values
            .iter()
            .enumerate()
            .map(|(i, value)| format!("when {i} then {}", value.replace('K', of)))
            .collect();
        self.of_table(&format!(
            "case when random() < 0.1 then null else case floor(random() * {})::int {} end end",
            kind.values.len(),
            forms.join(" ")
        ))
    }

    /// An insert of rows, without the semicolon.
    pub(crate) fn insertion(&self, rows: u64) -> String {
        let values: Vec<String> =
            self.columns.iter().map(|kind| self.any_value(kind, "r.k")).collect();
        let names: Vec<String> = (0..self.columns.len()).map(|i| format!("c{i}")).collect();
        format!(
            "insert into {} (k, {}) select r.k, {} from (select (random() * {NUMBERS})::int as k from generate_series(1, {rows})) r",
            self.table,
            names.join(", "),
            values.join(", ")
        )
    }

    pub(crate) fn insert(&self, rows: u64) -> String {
        format!("{};\n", self.insertion(rows))
    }

    /// An update that gives a column other values, without the semicolon.
    pub(crate) fn change(&self, random: &mut Random) -> String {
        let column = random.index(self.columns.len());
        let value = self.any_value(self.columns[column], "(k + 1)");
        let step = 3 + random.below(20);
        format!("update {} set c{column} = {value}, k = k + 1 where id % {step} = 0", self.table)
    }

    /// A column with a single condition on it, and one of its values for any number `of`.
    fn value(&self, column: usize, of: &str, random: &mut Random) -> String {
        let Kind { values, others, .. } = self.columns[column];
        let all = values.len() + others.len();
        let form = values.iter().chain(*others).nth(random.index(all)).unwrap();
        self.of_table(&form.replace('K', of))
    }

    fn condition(&self, random: &mut Random) -> String {
        let column = random.index(self.columns.len());
        let values = self.columns[column].values;
        let list = |random: &mut Random| -> Vec<String> {
            // One form only: the elements of a list must have one type.
            let form = values[random.index(values.len())];
            let count = 1 + random.below(6);
            (0..count).map(|_| self.of_table(&form.replace('K', &number(random)))).collect()
        };
        // An array of arrays would be something else.
        let of_arrays = self.columns[column].name.contains("[]");
        match random.below(16) {
            0 => format!("c{column} is null"),
            1 => format!("c{column} is not null and k = {}", number(random)),
            2 | 3 => format!("c{column} in ({})", list(random).join(", ")),
            4 | 5 if !of_arrays => {
                format!("c{column} = any (array[{}, null])", list(random).join(", "))
            }
            6 if !of_arrays => {
                let form = self.of_table(&values[random.index(values.len())].replace('K', "g"));
                format!("c{column} = any (array(select {form} from generate_series(5, 9) g))")
            }
            7 => format!("c{column} = (select {})", self.value(column, &number(random), random)),
            8 if self.expression => format!("k % 7 = {}", random.below(9)),
            9 => {
                format!("c{column} = {} and note = 0", self.value(column, &number(random), random))
            }
            _ => format!("c{column} = {}", self.value(column, &number(random), random)),
        }
    }

    /// What follows `from` in a query about rows `x`.
    pub(crate) fn question(&self, random: &mut Random) -> String {
        let joint = if random.one_in(6) { " or " } else { " and " };
        let count = 1 + random.index(3);
        let conditions: Vec<String> =
            (0..count).map(|_| format!("({})", self.condition(random))).collect();
        let partial = if self.partial { " and k % 3 <> 0" } else { "" };
        let conditions = format!("({}){partial}", conditions.join(joint));
        if random.one_in(12) {
            // A scan that begins again and again.
            let column = random.index(self.columns.len());
            let value = self.value(column, "g.n", random);
            let table = &self.table;
            return format!(
                "generate_series(1, 9, 2) g (n), {table} x where x.c{column} = {value} and {conditions}"
            );
        }
        format!("{} x where {conditions}", self.table)
    }

    /// A statement with a parameter that asks for a column; values to execute it with, each with the question that it amounts to.
    pub(crate) fn prepared(&self, name: &str, random: &mut Random) -> Prepared {
        let column = random.index(self.columns.len());
        let Kind { name: kind, values, .. } = self.columns[column];
        let form = values[random.index(values.len())];
        // A parameter has the collation of its type, which for `name` is one that does not go with others.
        let collation = kind.split_once(" collate ").map_or("", |(_, collation)| collation);
        let parameter = match collation {
            "" => "$1".to_owned(),
            collation => self.of_table(&format!("$1 collate {collation}")),
        };
        let partial = if self.partial { " and k % 3 <> 0" } else { "" };
        let from = |value: &str| format!("{} x where c{column} = {value}{partial}", self.table);
        let calls = (0..4).map(|_| self.of_table(&form.replace('K', &number(random))));
        let calls = calls.map(|value| (value.clone(), from(&value))).collect();
        Prepared {
            prepare: format!("prepare {name} as select {DIGEST} from {};\n", from(&parameter)),
            calls,
        }
    }
}
