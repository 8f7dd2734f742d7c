//! Which statuses a route may answer with, by the OpenAPI document.
//!
//! Every route has a default response, which allows any client error. A server error is allowed only if the document lists its
//! status for that route.

use model::yaml;

pub(crate) struct Contract(Vec<Route>);

struct Route {
    method: String,
    segments: Vec<String>,
    statuses: Vec<u16>,
}

impl Contract {
    pub(crate) fn read(document: &str) -> Self {
        let document = yaml::read(document).unwrap().value;
        let mut routes = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let statuses = operation["responses"].as_object().into_iter().flat_map(|responses| responses.keys());
                routes.push(Route {
                    method: method.to_ascii_uppercase(),
                    segments: path.split('/').map(str::to_owned).collect(),
                    statuses: statuses.filter_map(|status| status.parse().ok()).collect(),
                });
            }
        }
        assert!(!routes.is_empty(), "the OpenAPI document describes no route");
        Self(routes)
    }

    /// Whether the document allows this status for a request.
    pub(crate) fn allows(&self, method: &str, path: &str, status: u16) -> bool {
        if (400..500).contains(&status) {
            return true;
        }
        let path = path.split('?').next().unwrap_or_default();
        let mut routes: Vec<_> = self.0.iter().filter(|route| route.method == method && route.matches(path)).collect();
        // A route without parameters matches before one with parameters.
        routes.sort_by_key(|route| route.parameters());
        routes.first().is_some_and(|route| route.statuses.contains(&status))
    }
}

impl Route {
    fn matches(&self, path: &str) -> bool {
        let segments: Vec<_> = path.split('/').collect();
        let same = |(known, segment): (&String, &&str)| known.starts_with('{') || known == segment;
        segments.len() == self.segments.len() && self.segments.iter().zip(&segments).all(same)
    }

    fn parameters(&self) -> usize {
        self.segments.iter().filter(|segment| segment.starts_with('{')).count()
    }
}
