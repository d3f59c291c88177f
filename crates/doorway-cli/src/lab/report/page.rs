//! The page: one file that needs no other file and no script.

use std::thread;

use doorway_core::{Primitive, Problem};

use super::{
    Page, curves, locks,
    plan::{Study, columns},
    verdicts::{self, Verdict, cell, title, verdicts},
};
use crate::chart::{escaped, style};

/// Returns the commands that found a fault: a claim that does not hold, or a wrong lock.
pub(super) fn wrong(page: &Page) -> Vec<&str> {
    let mut wrong = Vec::new();
    for study in &page.plan.studies {
        let violated =
            |verdict: &Verdict<'_>| verdict.holds == Some(false) && verdict.is_claimed(study);
        let all = verdicts(page, study);
        let parts = study.checks.iter().map(|job| job.command.as_str());
        wrong.extend(
            parts.filter(|command| all.iter().any(|it| it.command() == *command && violated(it))),
        );
    }
    let benches = page.plan.locks.iter().filter_map(|job| page.parts.get(&job.command));
    wrong.extend(benches.filter(|part| locks::wrong(part)).map(|part| part.command.as_str()));
    wrong
}

/// Returns the whole page.
pub(super) fn page(page: &Page) -> String {
    let mut body = head(page);
    for &problem in Problem::ALL {
        let studies: Vec<&Study> = page
            .plan
            .studies
            .iter()
            .filter(|study| study.entrant.claims.problem == problem)
            .collect();
        if !studies.is_empty() {
            body += &tables(page, problem, &studies);
        }
    }
    let valued: Vec<_> =
        page.plan.studies.iter().filter(|study| !study.values.is_empty()).collect();
    if !valued.is_empty() {
        body += "<h2 id=\"values\">Values of the shared memory</h2>\n<p>The values that were reached, in every run of so many \
                 processes, beside the paper's formulas.</p>\n";
        valued.iter().for_each(|study| body += &locks::values(page, study));
    }
    body += "<h2 id=\"locks\">Locks</h2>\n<p>Ratios are medians over rounds in which every lock has its turn: above 1, the lock is \
             faster than the one named. Figures are of the machine that made this page.</p>\n";
    let benches = [&page.plan.native].into_iter().chain(&page.plan.locks);
    benches
        .filter_map(|job| page.parts.get(&job.command))
        .for_each(|part| body += &locks::bench(part));
    body += "<h2 id=\"details\">Algorithm by algorithm</h2>\n";
    page.plan.studies.iter().for_each(|study| body += &details(page, study));
    format!(
        include_str!("page.html"),
        css = include_str!("page.css"),
        charts = style(),
        body = body + &commands(page),
    )
}

fn head(page: &Page) -> String {
    let all = page.plan.jobs().count();
    let missing = match all - page.parts.len() {
        0 => String::new(),
        missing => format!(
            "<p class=\"open\">Not finished: {missing} of {all} commands have not been run. The same command again goes on from here.</p>\n"
        ),
    };
    let wrong = wrong(page);
    let verdict = if wrong.is_empty() {
        "<p class=\"yes\">Nothing that is claimed was found to be violated.</p>\n".into()
    } else {
        let list: String = wrong
            .iter()
            .map(|command| format!("<li><code>doorway {}</code></li>", escaped(command)))
            .collect();
        format!("<p class=\"no\">Something that is claimed does not hold:</p><ul>{list}</ul>\n")
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!(
        "<h1>Doorway: what was run</h1>\n<p>Made by <code>doorway {}</code>, version and build {}, on {cores} cores. Each figure is what a \
         command has printed, and links to that command or stands beside it. A verdict reaches as far as it says and no farther: so \
         many processes, slots or sessions, passages.</p>\n{missing}{verdict}{}",
        escaped(&page.command),
        escaped(page.store.by()),
        contents(page),
    )
}

fn contents(page: &Page) -> String {
    let problems = Problem::ALL
        .iter()
        .filter(|problem| page.plan.studies.iter().any(|s| s.entrant.claims.problem == **problem));
    let problems: String = problems
        .map(|problem| format!("<a href=\"#{problem}\">{}</a> ", title(*problem)))
        .collect();
    let algorithms: String = page
        .plan
        .studies
        .iter()
        .map(|s| format!("<a href=\"#{0}\">{0}</a> ", s.entrant.name))
        .collect();
    format!(
        "<nav>{problems}<a href=\"#locks\">Locks</a> <a href=\"#commands\">All commands</a></nav>\n<nav class=\"small\">{algorithms}</nav>\n"
    )
}

/// Returns the paper's tables: properties, costs and curves of all algorithms for a problem.
fn tables(page: &Page, problem: Problem, studies: &[&Study]) -> String {
    let columns = columns(problem);
    let mut html = format!(
        "<h2 id=\"{problem}\">{}</h2>\n<h3>Properties</h3>\n<div class=\"wide\"><table class=\"all\"><thead><tr><th>algorithm</th>",
        title(problem)
    );
    columns.iter().for_each(|property| html += &format!("<th>{property}</th>"));
    html += "</tr></thead><tbody>\n";
    for study in studies {
        let all = verdicts(page, study);
        html += &format!("<tr><th><a href=\"#{0}\">{0}</a></th>", study.entrant.name);
        columns.iter().for_each(|property| html += &format!("<td>{}</td>", cell(&all, *property)));
        html += "</tr>\n";
    }
    html += "</tbody></table></div>\n<h3>Means and costs</h3>\n<div class=\"wide\"><table class=\"all\"><thead><tr><th>algorithm</th><th>uses</th>\
             <th>registers</th><th>crashes tolerated</th><th>bounded</th><th>space</th><th>RMR in CC</th><th>RMR in DSM</th><th>a passage \
             natively</th></tr></thead><tbody>\n";
    for study in studies {
        let all = verdicts(page, study);
        let (bounded, bits) = verdicts::space(&all, study);
        let [cc, dsm] = curves::MODELS.map(|model| curves::cell(page, study, model));
        html += &format!(
            "<tr><th><a href=\"#{0}\">{0}</a></th><td>{1} <a class=\"at\" href=\"#c-list\">by its trait bound</a></td><td>{2}</td><td>{3}</td>\
             <td>{bounded}</td><td>{bits}</td><td>{cc}</td><td>{dsm}</td><td>{4}</td></tr>\n",
            study.entrant.name,
            uses(study),
            verdicts::registers(&all),
            verdicts::crashes(&all),
            locks::native(page, study),
        );
    }
    html += "</tbody></table></div>\n<h3>Remote memory references</h3>\n";
    html + &curves::overview(page, studies)
}

fn uses(study: &Study) -> String {
    study
        .entrant
        .claims
        .primitives
        .iter()
        .map(|it| Primitive::name(*it))
        .collect::<Vec<_>>()
        .join(", ")
}

fn details(page: &Page, study: &Study) -> String {
    let claims = &study.entrant.claims;
    format!(
        "<section id=\"{name}\">\n<h3>{name}</h3>\n<p>{}, {}. Uses {}.</p>\n{}{}</section>\n",
        escaped(claims.paper),
        escaped(claims.figure),
        uses(study),
        verdicts::table(&verdicts(page, study), study),
        curves::section(page, study),
        name = study.entrant.name,
    )
}

/// Lists every command, and how long it took.
fn commands(page: &Page) -> String {
    let mut html = String::from(
        "<h2 id=\"commands\">All commands</h2>\n<p>With <code>--json</code> each of them prints what the tables above are made from; it is \
         kept in <code>parts</code> beside this page.</p>\n<div class=\"wide\"><table><thead><tr><th>command</th><th>seconds</th></tr></thead><tbody>\n\
         <tr id=\"c-list\"><td><code>doorway lab list</code></td><td></td></tr>\n",
    );
    for job in page.plan.jobs() {
        let seconds = page
            .parts
            .get(&job.command)
            .map_or("not run".into(), |part| format!("{:.2}", part.seconds));
        html += &format!(
            "<tr><td><code>doorway {}</code></td><td class=\"n\">{seconds}</td></tr>\n",
            escaped(&job.command)
        );
    }
    html + "</tbody></table></div>\n"
}
