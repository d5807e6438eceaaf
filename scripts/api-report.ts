/**
 * `npm run api [-- --write]`: compares the public types of `sallyport/interceptor` and `sallyport/testing` with
 * their pages in docs/internal, so that a change of the surface is seen in review. `--write` writes the pages.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'

const ROOT = resolve(import.meta.dirname, '..')
/** By the name of the page. */
const LIBRARIES = { 'interceptor.api.md': 'src/interceptor', 'testing.api.md': 'src/testing-api' } as const

const folder = mkdtempSync(join(tmpdir(), 'sallyport-api-'))
try {
  process.exitCode = report()
} finally {
  rmSync(folder, { recursive: true })
}

function report(): number {
  const tsc = ['-p', 'tsconfig.build-node20.json', '--outDir', folder, '--emitDeclarationOnly']
  if (spawnSync('tsc', tsc, { cwd: ROOT, stdio: 'inherit' }).status !== 0) return 1
  const changed = Object.entries(LIBRARIES).filter(([name, source]) => {
    const page = join(ROOT, 'docs/internal', name)
    const found = extract(name, source)
    if (process.argv.includes('--write')) writeFileSync(page, found)
    return readFileSync(page, 'utf8') !== found
  })
  if (changed.length === 0) return 0
  process.stderr.write('The public types changed: look at the difference after npm run api -- --write\n')
  return 1
}

function extract(name: string, source: string): string {
  const silent = { default: { logLevel: ExtractorLogLevel.None } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'sallyport', type: 'module' }))
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: join(folder, source, 'index.d.ts'),
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            module: 'nodenext',
            target: 'es2022',
            lib: ['es2023'],
            strict: true,
            skipLibCheck: true,
            typeRoots: [join(ROOT, 'node_modules/@types')],
          },
          files: [`${source}/index.d.ts`],
        },
      },
      apiReport: {
        enabled: true,
        includeForgottenExports: true,
        reportFileName: name,
        reportFolder: folder,
        reportTempFolder: folder,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: silent,
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, 'package.json'),
  })
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback: message => Object.assign(message, { handled: true }),
  })
  return readFileSync(join(folder, name), 'utf8')
}
