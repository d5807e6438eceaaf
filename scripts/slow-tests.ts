/**
 * Test files that take long, and whose rules change seldom or are covered by quicker tests of their units. `npm test` leaves
 * them out, so that it takes two and a half minutes on two cores. They run in CI (`TEST_THOROUGH`) and when they are named.
 */
export const SLOW_TESTS: readonly string[] = [
  // What is shipped: the website, the image as compose.yaml and the chart start it, upgrades from each release, every command.
  'test/journeys/guides.test.ts',
  'test/image/image.test.ts',
  'scripts/site/site.test.ts',
  'scripts/test.test.ts',
  'test/journeys/apps.test.ts',
  'test/journeys/commands.test.ts',
  'test/journeys/people.test.ts',
  'test/data-export.test.ts',
  'test/releases.test.ts',
  // Every page as every kind of account.
  'src/auth/walk.test.ts',
  // What requests cost, and how that grows.
  'src/auth/users/check-password.test.ts',
  'test/cost.test.ts',
  'test/growth.test.ts',
  'test/others-data.test.ts',
  'test/cost-gateway.test.ts',
  'test/verify-trail.test.ts',
  'src/backends/sqlite/search/oracle.test.ts',
  'src/backends/sqlite/search/plans.test.ts',
  'src/backends/upstream/read/hidden.test.ts',
  'src/backends/upstream/search/large-panels.test.ts',
  'src/backends/upstream/search/complete-results.test.ts',
  'src/backends/upstream/search/unstored-searches.test.ts',
  'src/backends/upstream/http/slots.test.ts',
  'src/backends/upstream/http/bounds.test.ts',
  'src/backends/upstream/pass/large-bodies.test.ts',
  'src/backends/upstream/read/large-resources.test.ts',
  'test/enforcement.property.test.ts',
  'test/mcp-vectors.test.ts',
  // The rules of the FHIR API again, in front of another server, and of those that behave as HAPI and Medplum do.
  'src/backends/upstream/conformance-hapi.test.ts',
  'src/backends/upstream/conformance-medplum.test.ts',
  'src/backends/upstream/hapi.test.ts',
  'src/backends/upstream/conformance.test.ts',
  'src/backends/upstream/recognize/recognition.test.ts',
  'src/backends/upstream/check/check-upstream.test.ts',
  // Several processes.
  'src/testing-api/start.test.ts',
  'test/connections.test.ts',
  'test/filed-under.test.ts',
  'test/start.test.ts',
  'test/tokens-end.test.ts',
  'test/gateway.test.ts',
  'test/without-lab.test.ts',
  'src/cli/commands/data-import.test.ts',
  'src/auth/users/validity/made-for-loopback.test.ts',
  'src/store/sqlite/trail.test.ts',
  'src/auth/initialize.test.ts',
  'test/workers.test.ts',
  // Real counterparts that take long to start, and every route.
  'src/auth/pages/sign-in/directory.test.ts',
  'src/auth/pages/sign-in/second-factor.test.ts',
  'test/every-route.test.ts',
  // Pages in a browser, beyond a launch from the portal.
  'test/audit.test.ts',
  'test/administration.test.ts',
  'test/accounts.test.ts',
  'test/brand.test.ts',
  'test/developers.test.ts',
  'test/failures.test.ts',
  'test/hostile-names.test.ts',
  'test/launch-form.test.ts',
  'test/mcp-client.test.ts',
  'test/pages.test.ts',
  'test/patients.test.ts',
  'test/portal.test.ts',
  'test/second-factors.test.ts',
  'test/session-script.test.ts',
  'test/session-pages.test.ts',
  'test/support/browser.test.ts',
  'test/standalone.test.ts',
  'test/third-party-clients.test.ts',
  'test/watch.test.ts',
]

/** Tests of the packages, which `npm run test:package` runs. `npm test` runs them only if they are named. */
export const PACKAGE_TESTS: readonly string[] = ['scripts/build.test.ts', 'scripts/package/installed.test.ts']
