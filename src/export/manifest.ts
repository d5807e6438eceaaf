/** The manifest of Bulk Data Access, as a file beside those of the export. Its URLs are the names of files. */
export interface ExportManifest {
  readonly transactionTime: string
  readonly request: string
  readonly requiresAccessToken: boolean
  readonly output: readonly ManifestItem[]
  readonly deleted: readonly ManifestItem[]
  readonly error: readonly ManifestItem[]
}

export interface ManifestItem {
  readonly type: string
  readonly url: string
  readonly count?: number
}
