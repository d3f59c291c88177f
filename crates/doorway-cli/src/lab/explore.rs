//! `doorway lab explore`.

use std::process::ExitCode;

use doorway_lab::viewer::{ExploreError, Explorer};

use crate::{
    args::lab::Explore,
    error::Failure,
    http::{Request, Response, Server},
    output::{print, say},
};

/// The most processes: a user cannot follow more lanes.
const MAX_N: usize = 16;

/// Runs the command.
pub(crate) fn run(args: &Explore) -> Result<ExitCode, Failure> {
    if args.instance.n > MAX_N {
        return Err(Failure::Usage(format!(
            "-n {}: the explorer shows at most {MAX_N} processes; try lab simulate",
            args.instance.n
        )));
    }
    let (_, subject) = super::instance(&args.instance)?;
    let explorer = Explorer::new(subject);
    let page = explorer.page().map_err(|error| match error {
        ExploreError::Fault(fault) => Failure::Fault(fault),
        error => Failure::Usage(error.to_string()),
    })?;
    let server = Server::new().map_err(Failure::Loopback)?;
    print(&format!("{}\n", server.address()))?;
    say("open that in a browser on this machine; Ctrl-C ends it");
    server.serve(|request| respond(&explorer, &page, &request));
    Ok(ExitCode::SUCCESS)
}

fn respond(explorer: &Explorer, page: &str, request: &Request) -> Response {
    match (&*request.method, &*request.path) {
        ("GET", "/") => Response { status: "200 OK", kind: "text/html", body: page.into() },
        ("POST", "/explore") => {
            let plan = match serde_json::from_str(&request.body) {
                Ok(plan) => plan,
                Err(error) => {
                    return Response::error("400 Bad Request", &format!("not a schedule: {error}"));
                }
            };
            match explorer.answer(plan) {
                Ok(body) => Response { status: "200 OK", kind: "application/json", body },
                Err(error) => Response::error("422 Unprocessable Content", &error.to_string()),
            }
        }
        (_, "/" | "/explore") => Response::error(
            "405 Method Not Allowed",
            "the page is GET /, a schedule is POST /explore",
        ),
        _ => Response::error("404 Not Found", "there is nothing else here"),
    }
}
