import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { listOwnFolder, readOwnFile } from '../../core/index.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

interface Asset {
  readonly type: string
  readonly content: string
  /** The name with a hash of the content: `sallyport.1f0c6b2a9d.css`. */
  readonly hashedName: string
}

const FOLDER = 'src/web/ui/assets'

function loadAsset(name: string): Asset {
  const ending = extname(name)
  const content = readOwnFile(`${FOLDER}/${name}`)
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 10)
  return {
    type: TYPES[ending] ?? 'application/octet-stream',
    content,
    hashedName: `${name.slice(0, -ending.length)}.${hash}${ending}`,
  }
}

const assets: ReadonlyMap<string, Asset> = new Map(
  listOwnFolder(FOLDER)
    .filter(name => extname(name) in TYPES)
    .map(name => [name, loadAsset(name)]),
)
const byHashedName = new Map([...assets.values()].map(asset => [asset.hashedName, asset]))

/** Returns the URL of a file of `src/web/ui/assets`. It changes with the content, so that browsers may cache it for ever. */
export function getAssetUrl(name: string): string {
  const asset = assets.get(name)
  if (!asset) throw new Error(`Cannot link asset ${name}: there is no such file in src/web/ui/assets`)
  return `/assets/${asset.hashedName}`
}

export function serveAssets(app: FastifyInstance): void {
  app.get<{ Params: { name: string } }>('/assets/:name', (request, reply) => {
    const { name } = request.params
    const asset = byHashedName.get(name) ?? assets.get(name)
    if (!asset) return reply.callNotFound()
    return reply
      .type(asset.type)
      .header('cache-control', byHashedName.has(name) ? 'public, max-age=31536000, immutable' : 'no-cache')
      .send(asset.content)
  })
}
