//! A request that asks for something: its parameters, and what its caller may do.

use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::Method;
use http::header::CONTENT_TYPE;

use super::gate::Gate;
use super::order::MOST_TEXT;
use super::params::Params;
use super::refusal::Refusal;
use super::site::Service;
use crate::server::{Untaken, Visit};

/// Two texts in the form in which a byte takes three.
const MOST_BODY: usize = 2 * 3 * MOST_TEXT + (1 << 20);

/// The parameters of a request, with what its head says of its caller.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) params: Params,
    /// Whether the caller showed the token, or needs none. It is not taken from an address: it would be in logs.
    pub(crate) has_token: bool,
    /// Whether a page of another site has a browser ask this.
    pub(crate) is_cross_origin: bool,
}

/// Why there is no question.
#[derive(Debug)]
pub(crate) enum Unasked {
    /// It may not be asked, or cannot be read.
    Refused(Refusal),
    /// The server did not take the body.
    Untaken(Untaken),
}

impl From<Refusal> for Unasked {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Untaken> for Unasked {
    fn from(untaken: Untaken) -> Self {
        Self::Untaken(untaken)
    }
}

impl FromRequest<Service> for Question {
    type Rejection = Unasked;

    /// Reads the body, if the head does not already say that it is not wanted: only a form may have its token in the body. The request has its
    /// place as soon as its token is there.
    async fn from_request(request: Request, service: &Service) -> Result<Self, Unasked> {
        let (mut head, body) = request.into_parts();
        let gate = &service.gate;
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_known = gate.admits_header(&head.headers);
        if !is_known && !body.is_end_stream() && !Params::is_form(content_type) {
            return Err(Refusal::not_logged_in().into());
        }
        let content_type = content_type.map(str::to_owned);
        let visit = Visit::from_request_parts(&mut head, service).await;
        let visit = visit.map_err(|_| Refusal::unhandled("the request has no connection"))?;
        let body = visit.read(body, MOST_BODY).await?;
        let params = Params::read(head.uri.query().unwrap_or(""), content_type.as_deref(), &body)?;
        let has_token = is_known || head.method == Method::POST && gate.admits(params.get("token"));
        if has_token {
            visit.let_in()?;
        }
        Ok(Self { params, has_token, is_cross_origin: Gate::is_cross_origin(&head.headers) })
    }
}
