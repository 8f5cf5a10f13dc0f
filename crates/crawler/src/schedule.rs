//! stub
#![allow(missing_docs, unused)]
use crate::*; use std::time::Duration;
#[derive(Debug)] pub struct Scheduler; #[derive(Debug, Clone)] pub struct Ticket { pub host: HostKey }
impl Ticket { pub fn is_void(&self)->bool{false} }
#[derive(Debug,Clone,Copy)] pub enum Outcome { Unused, Answer { status: u16, latency: Duration, retry_after: Option<Duration>, adjust_delay: bool }, Failed { host_failure: bool } }
pub enum Next { Fetch(Ticket), Start { waiter: u64, ticket: Ticket }, GiveUp { host: HostKey, reason: &'static str }, Wait(Timestamp), Idle }
impl Scheduler { pub fn new(_:&Settings,_:u64)->Self{Self} pub fn woken(&mut self,_:HostKey,_:Timestamp){} pub fn next(&mut self,_:Timestamp)->Next{Next::Idle} pub fn nothing_due(&mut self,_:Ticket,_:Option<Timestamp>,_:Timestamp){} pub fn request_start(&mut self,_:HostKey,_:u64,_:Timestamp){} pub fn ended(&mut self,_:Ticket,_:Outcome,_:Timestamp){} pub fn adjust(&mut self,_:&HostKey,_:Politeness,_:Timestamp){} pub fn pause(&mut self){} pub fn resume(&mut self){} pub fn hold(&mut self,_:bool){} pub fn is_parked(&self,_:Timestamp)->bool{false} }
pub struct MemoryFrontier; impl MemoryFrontier { pub fn new(_:Order)->Self{Self} }
impl Frontier for MemoryFrontier { async fn open(&self)->Result<Vec<(HostKey,u64)>>{Ok(vec![])} async fn push(&self,_:Vec<Request>)->Result<Pushed>{Ok(Pushed::default())} async fn lease(&self,_:&HostKey,_:usize,_:Timestamp)->Result<Leased>{Ok(Leased::default())} async fn settle(&self,_:Vec<Settled>)->Result<Pushed>{Ok(Pushed::default())} fn len(&self)->u64{0} }
