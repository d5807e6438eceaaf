import type { Sealer } from '../../store/index.ts'
import type { ExportFile } from '../exports.ts'

/** The content of a file: a range of rows or, without one, what the client asked for and did not get. */
export interface FileContent {
  readonly job: string
  readonly file?: ExportFile
}

const PURPOSE = 'file of a bulk export'

/** The URL of a file: its encrypted description, so that it reveals nothing and cannot be forged. A file keeps its URL. */
export function formatFileUrl(
  baseUrl: string,
  exports: { readonly sealer: Sealer } | undefined,
  content: FileContent,
): string {
  return `${baseUrl}/$export-file?of=${exports?.sealer.sealSame(JSON.stringify(content), PURPOSE)}`
}

/** Undefined for a text that is not from a URL of this server. */
export function openFileUrl(sealer: Sealer, text: string): FileContent | undefined {
  const content = sealer.tryOpen(text, PURPOSE)
  return content === undefined ? undefined : JSON.parse(content)
}
