import type { Sealer } from '../../store/index.ts'
import type { ExportFile } from '../exports.ts'

/** The content of a file: a range of rows or, without one, what the client asked for and did not get. */
export interface FileContent {
  readonly job: string
  readonly file?: ExportFile
  /** The URL of a file or manifest of the upstream's own export, below its base. */
  readonly place?: string
}

const PURPOSE = 'file of a bulk export'
const MANIFEST = 'manifest of a bulk export'

type Sealing = { readonly sealer: Sealer } | undefined

/** The URL of a file: its encrypted description, so that it reveals nothing and cannot be forged. A file keeps its URL. */
export function formatFileUrl(baseUrl: string, exports: Sealing, content: FileContent): string {
  return `${baseUrl}/$export-file?of=${exports?.sealer.sealSame(JSON.stringify(content), PURPOSE)}`
}

/** The URL of a further manifest of the upstream's own export. */
export function formatManifestUrl(baseUrl: string, exports: Sealing, content: FileContent): string {
  const sealed = exports?.sealer.sealSame(JSON.stringify(content), MANIFEST)
  return `${formatStatusUrl(baseUrl, content.job)}&manifest=${sealed}`
}

export function openManifest(exports: Sealing, text: string) {
  return open(exports?.sealer, text, MANIFEST)
}

/** Undefined for a text that is not from a URL of this server. */
export function openFileUrl(sealer: Sealer, text: string): FileContent | undefined {
  return open(sealer, text, PURPOSE)
}

function open(sealer: Sealer | undefined, text: string, purpose: string): FileContent | undefined {
  const content = sealer?.tryOpen(text, purpose)
  return content === undefined ? undefined : JSON.parse(content)
}

/** A later manifest of an export has a URL of its own. */
export function formatStatusUrl(baseUrl: string, id: string, page = 1): string {
  return `${baseUrl}/$export-status?job=${id}${page > 1 ? `&manifest=${page}` : ''}`
}
