import { readFileSync, statSync } from 'node:fs'
import { describeError, fail, isFailure } from '../core/index.ts'

const MAX_BYTES = 256 * 1024
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Whatever could act or load something. The server's headers disarm it too; a logo with it is the wrong file. */
const ACTIVE =
  /<script|<foreignobject|<!entity|\son[a-z]+\s*=|javascript:|(?:href|src)\s*=\s*["']?\s*(?!["'#]|data:image\/)\S|@import|url\(\s*["']?(?!["'#]|data:image\/)/i

export interface LogoFile {
  readonly type: 'image/png' | 'image/svg+xml'
  readonly content: Buffer
}

/** Reads the logo of the organization. The type follows from the content. */
export function readLogo(path: string) {
  try {
    const { size } = statSync(path)
    if (size > MAX_BYTES) return refuse(path, `it has ${size} bytes, and at most ${MAX_BYTES} are allowed`)
    return recognize(path, readFileSync(path))
  } catch (error) {
    return refuse(path, describeError(error))
  }
}

function recognize(path: string, content: Buffer) {
  if (content.subarray(0, PNG.length).equals(PNG)) return { type: 'image/png', content } satisfies LogoFile
  const text = content.toString('utf8')
  if (!/^\uFEFF?\s*(?:<\?xml[^>]*>\s*|<!--[\s\S]*?-->\s*|<!doctype svg[^[>]*>\s*)*<svg[\s>]/i.test(text))
    return refuse(path, 'it is neither PNG nor SVG')
  const active = ACTIVE.exec(text)?.[0].trim()
  return active === undefined
    ? ({ type: 'image/svg+xml', content } satisfies LogoFile)
    : refuse(path, `the SVG has "${active}", and may neither run scripts nor load anything`)
}

function refuse(path: string, reason: string) {
  return fail({ reason: `SMART_BRAND_LOGO cannot use ${path}: ${reason}` })
}

export function findLogoProblems(path: string | undefined): readonly string[] {
  const logo = path === undefined ? undefined : readLogo(path)
  return isFailure(logo) ? [logo.reason] : []
}
