//! `verify`: checks images, ours and others', and gives a verified image its real tags.

mod show;
pub(super) mod subject;

use super::check::{Origin, Subject, check};
use super::figures;
use super::gpus::Wish;
use super::push::{push_verified, pushable};
use super::reports;
use super::session::Session;
use super::{CommandError, Exit};
use crate::cli::VerifyArgs;
use crate::engine::ImageInfo;
use crate::lock::Lock;
use crate::plan::UNVERIFIED;
use crate::report::Event;
use crate::settings::Settings;
use crate::store::{Store, write_atomically};
use crate::tag_policy::{Claim, claim, promoted};
use crate::verdict::{Verdict, junit};
use show::{Answer, Reward, show};
pub(super) use subject::local;
use subject::{Named, found, origin};

pub(super) async fn verify(args: &VerifyArgs, settings: &Settings) -> Result<Exit, CommandError> {
    if args.lock.is_some() && args.images.len() > 1 {
        return Err(CommandError::OneSpecOnly { option: "--lock", count: args.images.len() });
    }
    let wish = Wish::parse(args.gpus.as_deref())?;
    let mut answers = Vec::new();
    if args.last {
        for name in &args.images {
            answers.push(Answer::of(name, last(settings, name).await));
        }
    } else {
        let session = Session::open(settings, None).await?;
        for name in &args.images {
            answers.push(one(&session, args, &wish, name).await);
        }
    }
    if let Some(file) = &args.junit {
        let verdicts: Vec<_> = answers.iter().filter_map(|answer| answer.result.as_ref().ok()).collect();
        write_atomically(&settings.current_dir.join(file), junit(&verdicts).as_bytes())?;
    }
    show(answers, settings)
}

/// One image: found, checked, its report kept, its tags put on and pushed if it earned them.
async fn one(session: &Session<'_>, args: &VerifyArgs, wish: &Wish, name: &str) -> Answer {
    match checked(session, args, wish, name).await {
        Err(error) => Answer::of(name, Err(error)),
        Ok((verdict, image, lock)) => {
            let mut reward = Reward::default();
            let given = give(session, args, lock.as_ref(), &image, &verdict, &mut reward).await;
            Answer { reward, undone: given.err(), ..Answer::of(name, Ok(verdict)) }
        }
    }
}

async fn checked(
    session: &Session<'_>,
    args: &VerifyArgs,
    wish: &Wish,
    name: &str,
) -> Result<(Verdict, ImageInfo, Option<Lock>), CommandError> {
    let Named { reference, image } = found(session, name).await?;
    let (origin, lock) = origin(session, args.lock.as_deref(), &image).await?;
    let origin = lock.as_ref().map_or(origin, |lock| Origin::Ours { lock, baked: false });
    let subject = Subject { image: &image, name: &reference, origin, level: args.level, gpus: wish };
    let verdict = check(session, &subject).await?;
    reports::save(&session.store, &verdict)?;
    if args.record {
        let text = match figures::record(session, &verdict)? {
            0 => "no speed was measured: nothing is recorded".to_owned(),
            count => format!("recorded as what this host should reach: {count} speeds"),
        };
        session.reporter.report(Event::Note { text });
    }
    Ok((verdict, image, lock))
}

/// Puts the real tags on an image that has only unverified ones and earned them, here and where they name.
async fn give(
    session: &Session<'_>,
    args: &VerifyArgs,
    lock: Option<&Lock>,
    image: &ImageInfo,
    verdict: &Verdict,
    reward: &mut Reward,
) -> Result<(), CommandError> {
    let earned = promoted(&image.tags);
    let because = match lock.map(|lock| claim(lock, verdict)) {
        Some(Claim::Verified) => {
            for tag in &earned {
                session.engine.tag(&image.id, tag).await?;
                reward.tags.push(tag.clone());
            }
            if args.push {
                let known = image.tags.iter().filter(|tag| !tag.ends_with(UNVERIFIED)).cloned();
                for target in pushable(&known.chain(earned).collect::<Vec<_>>())? {
                    reward.pushed.push(push_verified(session, image, &target).await?);
                }
            }
            return Ok(());
        }
        // The exit code is that of the failure.
        Some(Claim::Failed) => return Ok(()),
        Some(Claim::Unverified { because }) => because,
        None => "it agrees with no lock of ours".to_owned(),
    };
    if args.push {
        return Err(CommandError::NotPushed { because });
    }
    if lock.is_some() && verdict.executed && !earned.is_empty() {
        session.reporter.report(Event::Note { text: format!("no tag without -unverified: {because}") });
    }
    Ok(())
}

/// The last report; the engine is asked which image the name means now, if it answers.
async fn last(settings: &Settings, name: &str) -> Result<Verdict, CommandError> {
    let absent = || CommandError::NoReport { image: name.to_owned() };
    if let Ok(session) = Session::open(settings, None).await
        && let Some(Named { image, .. }) = subject::local(&session, name).await?
    {
        return reports::last(&session.store, &image.id)?.ok_or_else(absent);
    }
    let store = Store::open(&settings.cache_dir, &settings.state_dir)?;
    reports::named(&store, name)?.ok_or_else(absent)
}
