//! `doorway top`: the same as `status`, updated while the user watches.

use std::{
    io::{IsTerminal, stdout},
    process::ExitCode,
    time::{Duration, Instant},
};

use ratatui::{
    DefaultTerminal, Frame,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout},
    style::{Style, Stylize},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    Locks, locks,
    status::views,
    view::{View, Who, age},
};
use crate::{args::named::Top, error::Failure, output::one_line};

const EVERY: Duration = Duration::from_millis(500);

pub(crate) fn top(args: &Top) -> Result<ExitCode, Failure> {
    let locks = locks(&args.place)?;
    if !stdout().is_terminal() {
        return Err(Failure::Usage("top is for a terminal; try doorway status".into()));
    }
    views(&*locks, args.name.as_deref())?; // reports errors before the screen is cleared
    let mut terminal = ratatui::try_init().map_err(Failure::Output)?;
    let ended = show(&mut terminal, &*locks, args.name.as_deref());
    ratatui::restore();
    ended.map(|()| ExitCode::SUCCESS)
}

fn show(
    terminal: &mut DefaultTerminal,
    locks: &dyn Locks,
    name: Option<&str>,
) -> Result<(), Failure> {
    let mut scrolled: u16 = 0;
    loop {
        // A lock that is removed meanwhile disappears, and appears again when a process makes it
        // again.
        let (views, failures) = match views(locks, name) {
            Err(failure) if failure.is_missing() => Default::default(),
            Err(failure) => (Vec::new(), vec![failure]),
            Ok(found) => found,
        };
        let mut lines: Vec<Line<'static>> = views.iter().flat_map(lines).collect();
        lines.extend(
            failures.iter().map(|failure| Line::from(one_line(&failure.to_string())).red()),
        );
        let most = u16::try_from(lines.len().saturating_sub(1)).unwrap_or(u16::MAX);
        let until = Instant::now() + EVERY;
        loop {
            scrolled = scrolled.min(most);
            terminal.draw(|frame| draw(frame, locks, &lines, scrolled)).map_err(Failure::Output)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !event::poll(left).map_err(Failure::Output)? {
                break;
            }
            if let Event::Key(key) = event::read().map_err(Failure::Output)?
                && key.kind != KeyEventKind::Release
            {
                match wish(key) {
                    Wish::Quit => return Ok(()),
                    Wish::Scroll(by) => scrolled = scrolled.saturating_add_signed(by),
                    Wish::Nothing => {}
                }
            }
        }
    }
}

enum Wish {
    Quit,
    Scroll(i16),
    Nothing,
}

fn wish(key: KeyEvent) -> Wish {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Down | KeyCode::Char('j') => Wish::Scroll(1),
        KeyCode::Up | KeyCode::Char('k') => Wish::Scroll(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => Wish::Scroll(20),
        KeyCode::PageUp => Wish::Scroll(-20),
        KeyCode::Home => Wish::Scroll(i16::MIN),
        KeyCode::End => Wish::Scroll(i16::MAX),
        _ => Wish::Nothing,
    }
}

fn draw(frame: &mut Frame<'_>, locks: &dyn Locks, lines: &[Line<'static>], scrolled: u16) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let title = format!(" doorway top · {} ", one_line(&locks.place()));
    frame.render_widget(Paragraph::new(title).style(Style::new().reversed()), head);
    if lines.is_empty() {
        frame.render_widget(
            Paragraph::new("no locks: `doorway run NAME -- COMMAND` makes one").dim(),
            body,
        );
    } else {
        frame.render_widget(Paragraph::new(lines.to_vec()).scroll((scrolled, 0)), body);
    }
    frame.render_widget(Paragraph::new(" q quit   ↑ ↓ scroll ").dim(), foot);
}

/// Formats a lock, its slots, and its queue.
fn lines(view: &View) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(vec![
        Span::from(one_line(&view.name)).bold(),
        Span::from(format!("  {}", view.summary())).dim(),
    ])];
    for slot in 0..view
        .slots
        .unwrap_or(0)
        .max(view.holders.iter().filter_map(|who| who.slot).max().map_or(0, |most| most + 1))
    {
        match view.holders.iter().find(|who| who.slot == Some(slot)) {
            Some(who) => lines.push(row(Span::from(format!("  ● slot {slot:<4}")).green(), who)),
            None if view.slots.is_some() => {
                lines.push(Line::from(Span::from(format!("  ○ slot {slot:<4}")).dim()))
            }
            None => {}
        }
    }
    let waiting = view.waiting.iter().enumerate();
    lines.extend(
        waiting.map(|(i, who)| {
            row(Span::from(format!("  … {:<9}", format!("{i} ahead"))).yellow(), who)
        }),
    );
    lines.push(Line::default());
    lines
}

fn row(first: Span<'static>, who: &Who) -> Line<'static> {
    let session = who
        .session
        .as_deref()
        .map(|session| format!("[{}] ", one_line(session)))
        .unwrap_or_default();
    Line::from(vec![
        first,
        Span::from(format!("{}{:>8}  {:>8}  {session}", who.on(), who.pid, age(who.seconds))),
        Span::from(one_line(&who.command)),
    ])
}
