import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import { readLogo } from './logo-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function read(content: string | Buffer) {
  const path = join(folder, 'logo')
  writeFileSync(path, content)
  return readLogo(path)
}

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">'

describe('readLogo', () => {
  it('recognizes PNG and SVG by their content', () => {
    const accepted = [
      ['image/png', Buffer.from('89504e470d0a1a0a00', 'hex')],
      ['image/svg+xml', `${SVG}<use href="#a"/><image href="data:image/png;base64,AA=="/></svg>`],
      [
        'image/svg+xml',
        `<?xml version="1.0"?>\n<!-- made by -->\n<!DOCTYPE svg PUBLIC "a" "b">\n${SVG}</svg>`,
      ],
    ] as const
    for (const [type, content] of accepted) {
      const logo = read(content)
      assert.ok(!isFailure(logo), JSON.stringify(logo))
      assert.equal(logo.type, type)
    }
  })

  it('refuses an SVG that could run or load something', () => {
    for (const part of [
      '<script>alert(1)</script>',
      '<rect onload = "alert(1)"/>',
      '<a xlink:href="javascript:alert(1)"/>',
      '<image href="https://evil.example/x.png"/>',
      '<foreignObject/>',
      '<style>@import "https://evil.example/x.css"</style>',
      '<rect style="fill: url(https://evil.example/x)"/>',
    ]) {
      const logo = read(`${SVG}${part}</svg>`)
      assert.ok(isFailure(logo), part)
      assert.match(logo.reason, /^SMART_BRAND_LOGO cannot use .+: the SVG has ".+", and may neither/)
    }
  })

  it('refuses other files, large files and missing files', () => {
    const refused = [
      [read('<html><svg></svg></html>'), /neither PNG nor SVG/],
      [read(Buffer.alloc(256 * 1024 + 1)), /it has 262145 bytes, and at most 262144 are allowed/],
      [readLogo(join(folder, 'none')), /ENOENT/],
    ] as const
    for (const [logo, reason] of refused) {
      assert.ok(isFailure(logo))
      assert.match(logo.reason, reason)
    }
  })
})
