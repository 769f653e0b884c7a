//! The archive of solves: folders in a local folder or in an object store. Folders are uploaded
//! file by file, the JSON file that describes the contents last: a folder without it is incomplete,
//! and readers refuse it. A folder may have folders of files, such as the policies of a snapshot.

use anyhow::{Context, Result, anyhow};
use capacity_portal::{ArchiveError, ArchivedFile, Chunks};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Place;
use object_store::{ObjectStore, ObjectStoreExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use url::Url;

/// An archive.
#[derive(Clone, Debug)]
pub struct Archive {
    store: Arc<dyn ObjectStore>,
    /// Prefix of its objects in the store.
    root: Place,
    url: Url,
}

impl Archive {
    /// Opens an archive; a missing folder is created.
    ///
    /// # Errors
    /// If the place is neither a folder nor a URL of a supported store.
    pub fn open(place: &str) -> Result<Archive> {
        let name = || format!("archive {place}");
        match Url::parse(place) {
            // A single letter before the colon is a drive of a path, not a URL scheme.
            Ok(url) if url.scheme().len() > 1 => Archive::remote(url).with_context(name),
            _ => Archive::local(Path::new(place)).with_context(name),
        }
    }

    fn local(folder: &Path) -> Result<Archive> {
        std::fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let url = Url::from_directory_path(&folder)
            .map_err(|()| anyhow!("{} is not a folder", folder.display()))?;
        let store = LocalFileSystem::new_with_prefix(&folder)?.with_automatic_cleanup(true);
        Ok(Archive { store: Arc::new(store), root: Place::default(), url })
    }

    fn remote(url: Url) -> Result<Archive> {
        match url.scheme() {
            "file" => {
                let folder = url.to_file_path().map_err(|()| anyhow!("is not a folder"))?;
                Archive::local(&folder)
            }
            #[cfg(feature = "s3")]
            "s3" | "s3a" => {
                // Keys and region come from the environment, as for every client of S3.
                let builder = object_store::aws::AmazonS3Builder::from_env().with_url(url.as_str());
                let root = Place::from_url_path(url.path())?;
                let mut url = url;
                if !url.path().ends_with('/') {
                    url.set_path(&format!("{}/", url.path()));
                }
                Ok(Archive { store: Arc::new(builder.build()?), root, url })
            }
            scheme => Err(anyhow!(
                "{scheme}: not one of the stores this program was built with (file{})",
                if cfg!(feature = "s3") { ", s3" } else { "; s3 with the feature of that name" }
            )),
        }
    }

    /// Opens an archive that must be there.
    ///
    /// # Errors
    /// If it is a folder that is missing, or as [`Archive::open`].
    pub fn open_existing(place: &str) -> Result<Archive> {
        let folder = match Url::parse(place) {
            Ok(url) if url.scheme() == "file" => url.to_file_path().ok(),
            Ok(url) if url.scheme().len() > 1 => None,
            _ => Some(PathBuf::from(place)),
        };
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(anyhow!("archive {place}: there is no folder {}", folder.display()));
        }
        Archive::open(place)
    }

    /// The URLs of its snapshots, in order, without those that were copied there to be replayed.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn snapshots(&self) -> Result<Vec<String>> {
        let prefix = Some(&self.root).filter(|root| !root.as_ref().is_empty());
        let mut objects = self.store.list(prefix);
        let mut urls = Vec::new();
        while let Some(object) =
            objects.try_next().await.with_context(|| format!("listing {}", self.url))?
        {
            let parts: Vec<_> =
                object.location.prefix_match(&self.root).into_iter().flatten().collect();
            let names: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
            match names.as_slice() {
                ["replays", ..] => {}
                ["region.json"] => urls.push(self.url().to_owned()),
                [entry @ .., "region.json"] => urls.push(self.url_of(&entry.join("/"))?),
                _ => {}
            }
        }
        urls.sort();
        Ok(urls)
    }

    /// The folder of an entry, given by its URL, if the archive is on this machine.
    pub fn folder_of(&self, url: &str) -> Option<PathBuf> {
        Url::parse(url).ok().filter(|url| url.scheme() == "file")?.to_file_path().ok()
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The URL of an entry.
    ///
    /// # Errors
    /// If the name is invalid.
    pub fn url_of(&self, name: &str) -> Result<String> {
        Ok(self.url.join(&format!("{name}/"))?.to_string())
    }

    fn place(&self, name: &str) -> Place {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.root.clone(), |at, part| at.join(part))
    }

    /// Stores the files of a folder under a name; returns its URL.
    ///
    /// # Errors
    /// If the folder cannot be read or the store refuses.
    pub async fn put(&self, name: &str, folder: &Path) -> Result<String> {
        let mut files = Vec::new();
        for entry in entries(folder)? {
            if entry.is_dir() {
                files.extend(entries(&entry)?);
            } else {
                files.push(entry);
            }
        }
        // Sorted by type, then name: JSON last.
        files.sort_by_key(|file| (file.extension().is_some_and(|e| e == "json"), file.clone()));
        for file in files {
            let parts = file.strip_prefix(folder).unwrap_or(&file).iter();
            let at = parts.fold(self.place(name), |at, part| at.join(&*part.to_string_lossy()));
            let content = std::fs::read(&file).with_context(|| file.display().to_string())?;
            self.store.put(&at, content.into()).await.with_context(|| format!("storing {at}"))?;
        }
        self.url_of(name)
    }

    /// Copies an entry, given by its URL, to a folder.
    ///
    /// # Errors
    /// If there is no such entry, or the URL is not in this archive.
    pub async fn get(&self, url: &str, folder: &Path) -> Result<()> {
        let prefix = self.place(self.name_of(url)?);
        let kept: Vec<_> = self.store.list(Some(&prefix)).try_collect().await?;
        if kept.is_empty() {
            return Err(anyhow!("{url}: no such object"));
        }
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for object in kept {
            let at = object.location;
            let content = self.store.get(&at).await.with_context(|| format!("reading {at}"))?;
            let content = content.bytes().await.with_context(|| format!("reading {at}"))?;
            let parts = at.prefix_match(&prefix).into_iter().flatten();
            let file = parts.fold(folder.to_owned(), |file, part| file.join(part.as_ref()));
            let parent = file.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
            std::fs::write(&file, &content).with_context(|| file.display().to_string())?;
        }
        Ok(())
    }

    /// Copies one file of an entry, given by its URL, to an existing folder; false if there is no
    /// such file.
    ///
    /// # Errors
    /// If the URL is not in this archive, or the store refuses.
    pub async fn get_file(&self, url: &str, file: &str, folder: &Path) -> Result<bool> {
        let at = self.place(self.name_of(url)?).join(file);
        let content = match self.store.get(&at).await {
            Ok(found) => found.bytes().await.with_context(|| format!("reading {at}"))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error).context(format!("reading {at}")),
        };
        let to = folder.join(file);
        std::fs::write(&to, &content).with_context(|| to.display().to_string())?;
        Ok(true)
    }

    /// The name of the entry with a URL.
    fn name_of<'a>(&self, url: &'a str) -> Result<&'a str> {
        url.strip_prefix(self.url.as_str())
            .with_context(|| format!("{url} is not in the archive {}", self.url))
    }

    /// Deletes an entry. Succeeds if it does not exist.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let prefix = self.place(name);
        let kept: Vec<_> = self.store.list(Some(&prefix)).try_collect().await?;
        for object in kept {
            match self.store.delete(&object.location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error).context(format!("deleting {}", object.location)),
            }
        }
        Ok(())
    }
}

/// What is in a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    read().with_context(|| folder.display().to_string())
}

/// The files that the portal serves: those of the folder itself.
impl capacity_portal::Archive for Archive {
    fn files<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<ArchivedFile>, ArchiveError>> {
        async move {
            let prefix = self.place(self.name_of(url).map_err(silent)?);
            let kept: Vec<_> =
                self.store.list(Some(&prefix)).try_collect().await.map_err(silent)?;
            let file = |object: &object_store::ObjectMeta| {
                if object.location.prefix_match(&prefix)?.count() > 1 {
                    return None;
                }
                let name = object.location.filename()?.to_owned();
                Some(ArchivedFile { name, bytes: object.size })
            };
            let mut files: Vec<ArchivedFile> = kept.iter().filter_map(file).collect();
            files.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(files)
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        url: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Chunks>, ArchiveError>> {
        async move {
            let at = self.place(self.name_of(url).map_err(silent)?).join(name);
            match self.store.get(&at).await {
                Ok(found) => Ok(Some(found.into_stream().map_err(std::io::Error::other).boxed())),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(silent(error)),
            }
        }
        .boxed()
    }
}

fn silent(error: impl std::fmt::Display) -> ArchiveError {
    ArchiveError(format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::Archive;
    use futures_util::TryStreamExt;
    use std::fs;
    use std::path::Path;

    #[tokio::test]
    async fn folders_are_kept_brought_back_and_deleted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir(&from).expect("made");
        fs::write(from.join("a.parquet"), "rows").expect("written");
        fs::write(from.join("region.json"), "{}").expect("written");
        fs::create_dir(from.join("policies")).expect("made");
        fs::write(from.join("policies/power.sql"), "a policy").expect("written");
        let place = folder.path().join("archive with a space");
        let archive = Archive::open(&place.display().to_string()).expect("opened");
        let url = archive.put("solves/1/snapshot", &from).await.expect("kept");
        assert!(url.starts_with("file:///") && url.contains("%20"), "{url}");
        archive.get(&url, &to).await.expect("there");
        assert_eq!(fs::read_to_string(to.join("a.parquet")).expect("there"), "rows");
        let policy = fs::read_to_string(to.join("policies/power.sql"));
        assert_eq!(policy.expect("there"), "a policy");
        assert!(archive.get_file(&url, "region.json", &from).await.expect("asked"));
        assert!(!archive.get_file(&url, "warm.json", &from).await.expect("asked"), "not kept");
        // Through the portal's interface.
        let portal: &dyn capacity_portal::Archive = &archive;
        let names = portal.files(&url).await.expect("listed");
        let names: Vec<_> = names.iter().map(|of| (&*of.name, of.bytes)).collect();
        assert_eq!(names, [("a.parquet", 4), ("region.json", 2)]);
        let chunks = portal.read(&url, "a.parquet").await.expect("read").expect("there");
        let read: Vec<_> = chunks.try_collect().await.expect("read");
        assert_eq!(read.concat(), b"rows");
        assert!(portal.read(&url, "../from/a.parquet").await.is_ok_and(|found| found.is_none()));
        assert!(portal.read(&url, "none").await.expect("asked").is_none());
        assert!(portal.files("file:///elsewhere/x").await.is_err(), "elsewhere");
        let snapshots = archive.snapshots().await.expect("listed");
        assert_eq!(snapshots, std::slice::from_ref(&url));
        archive.put("replays/1/0/snapshot", &from).await.expect("kept");
        assert_eq!(archive.snapshots().await.expect("listed"), snapshots, "a copy is not one more");
        let there = archive.folder_of(&url).expect("on this machine");
        assert_eq!(fs::read_to_string(there.join("region.json")).expect("there"), "{}");
        let itself = Archive::open_existing(&there.display().to_string()).expect("a folder");
        assert_eq!(itself.snapshots().await.expect("listed"), [itself.url().to_owned()]);
        let error = Archive::open_existing("nowhere/x").expect_err("missing");
        assert!(error.to_string().contains("there is no folder nowhere/x"), "{error}");
        assert!(!Path::new("nowhere").exists(), "nothing is made");
        // Opening the URL gives the same archive.
        let again = Archive::open(archive.url()).expect("opened");
        again.get(&url, &to).await.expect("there");
        archive.delete("solves/1").await.expect("deleted");
        archive.delete("solves/1").await.expect("deleted before");
        assert!(archive.get(&url, &to).await.is_err(), "gone");
        let error = archive.get("file:///elsewhere/x", &to).await.expect_err("elsewhere");
        assert!(error.to_string().contains("not in the archive"), "{error}");
        let error = Archive::open("gopher://x/y").expect_err("unknown");
        assert!(format!("{error:#}").contains("gopher"), "{error:#}");
    }
}
