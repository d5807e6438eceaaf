import { readOwnFile } from '../../core/index.ts'

function readVersion(): string {
  const manifest: unknown = JSON.parse(readOwnFile('package.json'))
  if (typeof manifest !== 'object' || manifest === null || !('version' in manifest)) return 'unknown'
  return String(manifest.version)
}

export const version: string = readVersion()
