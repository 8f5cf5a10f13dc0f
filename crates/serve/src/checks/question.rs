//! A question: the parameters of a request, and what its client is allowed to do.

use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::Method;
use http::header::CONTENT_TYPE;
use huntsman_sweep::service::Refusal;

use super::order::MOST_TEXT;
use super::params::Params;
use super::site::{Service, not_logged_in};
use crate::access::Access;
use crate::server::{ActiveRequest, Rejection};

/// Maximum size of a body: two texts in the encoding that takes three bytes for each byte.
const MOST_BODY: usize = 2 * 3 * MOST_TEXT + (1 << 20);

/// The parameters of a request, with what its headers say about the client.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) params: Params,
    /// Whether the client sent the token, or none is needed. A token in the URL is not accepted, because URLs are
    /// logged.
    pub(crate) has_token: bool,
    /// Whether a browser sends this request for a page of another site.
    pub(crate) is_cross_origin: bool,
}

/// Why a request did not become a question.
#[derive(Debug)]
pub(crate) enum QuestionError {
    /// The client is not allowed to ask, or the parameters cannot be read.
    Refused(Refusal),
    /// The server did not accept the body.
    Rejected(Rejection),
}

impl From<Refusal> for QuestionError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Rejection> for QuestionError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl FromRequest<Service> for Question {
    type Rejection = QuestionError;

    /// Reads the body, unless the headers already decide that the request is refused; only a form may carry its token
    /// in the body. The connection keeps its place as soon as the token was seen.
    async fn from_request(request: Request, service: &Service) -> Result<Self, QuestionError> {
        let (mut head, body) = request.into_parts();
        let access = &service.access;
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_known = access.admits_header(&head.headers);
        if !is_known && !body.is_end_stream() && !Params::is_form(content_type) {
            return Err(not_logged_in().into());
        }
        let content_type = content_type.map(str::to_owned);
        let visit = ActiveRequest::from_request_parts(&mut head, service).await;
        let visit = visit.map_err(|_| Refusal::unhandled("the request has no connection"))?;
        let body = visit.read(body, MOST_BODY).await?;
        let params = Params::read(head.uri.query().unwrap_or(""), content_type.as_deref(), &body)?;
        let has_token = is_known || head.method == Method::POST && access.admits(params.get("token"));
        if has_token {
            visit.let_in()?;
        }
        Ok(Self { params, has_token, is_cross_origin: Access::is_cross_origin(&head.headers) })
    }
}
