//! The pipeline, in the order a run passes through it.

pub mod approval;
pub mod artifact;
pub mod auction;
pub mod blueprints;
pub mod budget;
pub mod cached;
pub mod child;
pub mod claim;
pub mod conflicts;
pub mod context;
pub mod conversation;
pub mod doubt;
pub mod draft_review;
pub mod form;
pub mod goal;
pub mod group;
pub mod guard;
pub mod lesson;
pub mod limits;
pub mod looked_up;
pub mod note;
pub mod outcome;
pub mod pattern;
pub mod peer;
pub mod people;
pub mod permissions;
pub mod placement;
pub mod plan;
pub mod presence;
pub mod query;
pub mod question;
pub mod refinement;
pub mod reflection;
pub mod report;
pub mod response;
pub mod rights;
pub mod specialist;
pub mod step;
pub mod task;
pub mod trial;
pub mod usage;
pub mod wait;
pub mod work;

pub use approval::{CallRuling, CallToApprove, CallVerdict};
pub use artifact::Artifact;
pub use auction::{Auction, AuctionRules, Award, Bid, CallForProposals};
pub use blueprints::{BlueprintBrief, BlueprintCall};
pub use budget::Budget;
pub use cached::{CachedAnswer, ToolCache};
pub use child::{Background, Parent};
pub use claim::{Claim, ClaimValue, Finite};
pub use conflicts::{ConflictStep, Conflicts};
pub use context::{ContextAuthor, ContextEntry, ContextLimits};
pub use conversation::Turn;
pub use doubt::{Doubt, DoubtKind};
pub use draft_review::{DraftRemark, DraftReview, DraftReviewPolicy, DraftVerdict, Revision};
pub use form::{CallForm, Form, FormReply, Given};
pub use goal::{CorpusRef, FetchedDocuments, Goal, Planning};
pub use group::{Committees, DecidedBy, Dissent, GroupVerdict, Membership, Temperament, View};
pub use guard::{
    GuardFailure, GuardReply, GuardRequest, GuardRule, GuardVerdict, Guarded, Hook, OnFailure, Ruling,
    is_guard_name,
};
pub use lesson::RunLessons;
pub use limits::{Granularity, ModelVerification, RunLimits, Writing};
pub use looked_up::{ContradictedValue, LookedUp, PlaceFound, Standing};
pub use note::{Check, Fault, Note, Reworded, SpinLevel, Verifier};
pub use outcome::{Advice, CallDigest, Citation, Ending, Finding, Outcome, Product, StepDigest, TaskResult};
pub use pattern::Pattern;
pub use peer::{
    CapabilityQuery, Capable, ContextRead, ContextRequest, ContextWrite, HelpRequest, Information,
    InformationShare, Peer, PeerAnswer, PeerRequest, Peers,
};
pub use people::{People, ReviewPolicy};
pub use permissions::{RolePermission, RolePermissions};
pub use placement::{PassedOver, Placement};
pub use plan::{Plan, PlanDraft, PlanTask, TaskDraft};
pub use presence::{AgentState, Presence};
pub use query::{SearchQuery, TaskQuery};
pub use question::{About, OnTimeout, Question, Reply};
pub use refinement::{RefineOperation, RefusedOperation};
pub use reflection::{Reflection, ReflectionLevel, ToolNote};
pub use report::Report;
pub use response::{Acceptance, FailureKind, Response, Responses};
pub use rights::{Grant, Grantor, Refusal, Right, Rights, TaskRights, Use, Voucher};
pub use specialist::{ContractSchemas, ContractSide, ContractViolation, Specialty};
pub use step::{
    Action, FurtherAction, ModelCall, Observation, ObservationStatus, Step, StoredMessage, TemplateRef,
    Thought,
};
pub use task::{TaskOffered, TaskStatus};
pub use trial::{
    Arm, ArmCount, Measure, ShadowOf, TaskTrial, TrialCounts, TrialMark, TrialMode, TrialRule, TrialSample,
    Variant, WithdrawRule, is_trial_name,
};
pub use usage::Usage;
pub use wait::{Answered, Awaited, ChildGoal, Wait};
pub use work::{ConflictBrief, HeldTo, LeafRef, RefineBrief, ReplanBrief, Work};
