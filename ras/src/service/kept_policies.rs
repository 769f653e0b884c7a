//! The policies of the region, as files beside the snapshot of a solve. A program that is built without policies solves no
//! region that has some.

use anyhow::{Context, Result, ensure};
use broker::{Policies, PoliciesEdition};
use report::SolveReport;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of policies of a snapshot.
pub(super) const FOLDER: &str = "policies";

/// The policies that a solve keeps.
pub(super) struct KeptPolicies {
    /// Their number.
    pub(super) edition: PoliciesEdition,
    /// Their files, by name.
    pub(super) files: Vec<PathBuf>,
}

impl KeptPolicies {
    /// Writes the policies in force beside a snapshot.
    ///
    /// # Errors
    /// If the system refuses, or this program is built without policies and there are some.
    pub(super) fn write(policies: &Policies, snapshot: &Path) -> Result<KeptPolicies> {
        let folder = snapshot.join(FOLDER);
        let mut files = Vec::new();
        for (name, sql) in policies.in_force() {
            let file = folder.join(format!("{name}.sql"));
            fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            fs::write(&file, sql).with_context(|| file.display().to_string())?;
            files.push(file);
        }
        KeptPolicies { edition: policies.edition, files }.readable()
    }

    /// The policies beside an archived snapshot.
    ///
    /// # Errors
    /// If the system refuses, or this program is built without policies and there are some.
    pub(super) fn beside(snapshot: &Path) -> Result<KeptPolicies> {
        let folder = snapshot.join(FOLDER);
        let mut files = Vec::new();
        if folder.is_dir() {
            for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let file = entry.with_context(|| folder.display().to_string())?.path();
                if file.extension().is_some_and(|end| end == "sql") {
                    files.push(file);
                }
            }
        }
        files.sort_unstable();
        KeptPolicies { edition: PoliciesEdition::default(), files }.readable()
    }

    fn readable(self) -> Result<KeptPolicies> {
        ensure!(
            cfg!(feature = "policies") || self.files.is_empty(),
            "the region has policies in SQL, and this program is built without them (feature `policies`)"
        );
        Ok(self)
    }

    /// Checks that the report of a solve says of each hard policy that it is kept.
    ///
    /// # Errors
    /// If it is silent about one, or says that more rows fail than before.
    #[cfg(feature = "policies")]
    pub(super) fn check(&self, report: &SolveReport) -> Result<()> {
        let mut read = Vec::new();
        for file in &self.files {
            let name = file.display().to_string();
            let text = fs::read_to_string(file).with_context(|| name.clone())?;
            read.push((name, text));
        }
        let read = read.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        for policy in crate::region_policies::hard_policies(read)? {
            let state = report.policies.iter().find(|of| of.policy == policy);
            let state = state
                .with_context(|| format!("the report does not say whether `{policy}` holds"))?;
            ensure!(
                state.is_kept(),
                "policy `{policy}` fails in {} rows, before in {}",
                state.fails,
                state.fails_before
            );
        }
        Ok(())
    }

    /// There is no file: [`KeptPolicies::write`] has refused them.
    #[cfg(not(feature = "policies"))]
    pub(super) fn check(&self, _: &SolveReport) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::KeptPolicies;
    use broker::Policies;

    #[test]
    fn a_region_without_policies_has_no_folder_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = KeptPolicies::write(&Policies::default(), folder.path()).expect("written");
        assert!(kept.files.is_empty() && !folder.path().join(super::FOLDER).exists());
        assert!(KeptPolicies::beside(folder.path()).expect("read").files.is_empty());
    }
}
