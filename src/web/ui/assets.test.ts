import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createServer } from '../http/index.ts'
import { getAssetUrl } from './index.ts'

const app = await createServer({ name: 'auth', url: 'http://localhost:9000' })

describe('getAssetUrl', () => {
  it('puts a hash of the content into the name', () => {
    assert.match(getAssetUrl('sallyport.css'), /^\/assets\/sallyport\.[0-9a-f]{10}\.css$/)
  })

  it('throws for a file that does not exist', () => {
    assert.throws(() => getAssetUrl('nothing.css'), /Cannot link asset nothing.css/)
  })
})

describe('GET /assets/*', () => {
  it('serves a file under its hashed URL with an unlimited cache time', async () => {
    const response = await app.inject(getAssetUrl('sallyport.css'))
    assert.equal(response.statusCode, 200)
    assert.equal(response.headers['content-type'], 'text/css; charset=utf-8')
    assert.equal(response.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.equal(response.body, readFileSync(new URL('assets/sallyport.css', import.meta.url), 'utf8'))
  })

  it('serves a file under its plain name without caching', async () => {
    const response = await app.inject('/assets/icon.svg')
    assert.equal(response.headers['content-type'], 'image/svg+xml')
    assert.equal(response.headers['cache-control'], 'no-cache')
  })

  for (const name of [
    'nothing.css',
    '..%2fassets.ts',
    '..',
    '%2e%2e%2findex.ts',
    'sallyport.0000000000.css',
    'constructor',
  ]) {
    it(`sends 404 for ${name}`, async () => {
      assert.equal((await app.inject(`/assets/${name}`)).statusCode, 404)
    })
  }
})

describe('sallyport.css', () => {
  const css = readFileSync(new URL('assets/sallyport.css', import.meta.url), 'utf8')

  it('loads nothing from other sites', () => {
    assert.doesNotMatch(css, /url\(|@import/)
  })

  it('contains colours only in the token blocks', () => {
    const outside = css.replace(/:root \{[^}]*\}/g, '').match(/#[0-9a-f]{3,8}\b/gi)
    assert.deepEqual(outside, null)
  })

  it('contains only classes that something uses', () => {
    const root = new URL('../../..', import.meta.url)
    const files = globSync('{src,scripts}/**/*.{ts,js}', {
      cwd: root,
      exclude: ['**/*.test.ts', '**/testing/**'],
    })
    const words = new Set(
      files.flatMap(file => readFileSync(new URL(file, root), 'utf8').match(/[\w-]+/g) ?? []),
    )
    const selectors = css.replaceAll(/\/\*.*?\*\/|\{[^{}]*\}/gs, ' ')
    const unused = [...new Set(selectors.match(/(?<=\.)[a-z][\w-]*/g))].filter(
      // A variant's name may be made by the code: `badge--${tone}`.
      name => !words.has(name) && !words.has(name.replace(/(?<=--).*/, '')),
    )
    assert.deepEqual(unused, [])
  })
})
