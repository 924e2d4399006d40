GRANT UPDATE (course) ON releases_releasestep TO lorekeeper_app;
